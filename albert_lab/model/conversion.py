"""The weights of an encoder, converted to another embedding size, sharing or depth, or to more
positions.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from scipy.linalg import helmert
from torch import Tensor

from albert_lab.config.schema import ConversionConfig
from albert_lab.model.shape import EncoderShape, changes

Tensors = dict[str, Tensor]
Tokens = Callable[[int], np.ndarray]
WORDS = "encoder.embeddings.word_embeddings.weight"
POSITIONS = "encoder.embeddings.position_embeddings.weight"
TYPES = "encoder.embeddings.token_type_embeddings.weight"
NORM = "encoder.embeddings.layer_norm"
PROJECTION = "encoder.embeddings.projection"
_OF_LAYERS = ("encoder.attention_blocks.", "encoder.ffn_blocks.")
# tokens of the text: a projection is fitted to half of them; the others measure what it loses
SAMPLED = 20_000
_SEED = 0  # of their tokens, positions and token types


@dataclass(frozen=True)
class Converted:
    """The state of a PretrainingModel of the new shape.

    unexplained is the share of the variance of the first layer's input that smaller embeddings
    lose, from 0 to 1, over tokens of the text; None if the embedding size does not fall, for then
    nothing is lost.
    """

    tensors: Tensors
    unexplained: float | None = None


def convert(
    tensors: Tensors,
    source: EncoderShape,
    target: EncoderShape,
    rules: ConversionConfig,
    tokens: Tokens,
) -> Converted:
    """The weights of a PretrainingModel of one shape, converted to another one.

    What does not differ between the shapes is copied. More positions than the source has are copies
    of its last one, as in PreSumm (Liu and Lapata 2019, arXiv 1908.08345).

    Args:
        tensors: the state of the source, on the CPU; heads may be absent.
        rules: how layers share a block, and which layers a shallower encoder keeps.
        tokens: called for a smaller embedding size, which is fitted to them: at least so many
            tokens [any number] as often as the text has them.

    Raises:
        ConfigError: the shapes differ in what cannot be converted.
    """
    changed = changes(source, target)
    converted = {
        name: tensor for name, tensor in tensors.items() if not name.startswith(_OF_LAYERS)
    }
    for kind in ("attention", "ffn"):
        converted |= _convert_blocks(tensors, kind, source, target, rules)
    if POSITIONS in converted:
        table = converted[POSITIONS]
        copies = table[-1:].expand(target.max_position_embeddings - len(table), -1)
        converted[POSITIONS] = torch.cat([table, copies])
    if "embedding_size" in changed or "projection" in changed:
        return _convert_embeddings(converted, source, target, tokens)
    return Converted(converted)


def _convert_blocks(
    tensors: Tensors, kind: str, source: EncoderShape, target: EncoderShape, rules: ConversionConfig
) -> Tensors:
    """The attention or FFN blocks of the target, each made of the blocks of the layers that it
    stands for.

    If these are one block, it is copied: unsharing, and the sharing of equal blocks, change
    nothing. Of different blocks the new one is the mean (average) or the first (lower), or the new
    blocks are together those of layers at equal distances (stepwise): the ways of Bae et al. 2024,
    arXiv 2410.20672.
    """
    prefix = f"encoder.{kind}_blocks"
    block_of_layer = getattr(source, f"{kind}_blocks")
    layers_of_blocks = _layers_of_blocks(kind, source, target, rules)
    stepwise = at_equal_distances(source.num_layers, len(layers_of_blocks))
    first = f"{prefix}.0."
    parameters = [name.removeprefix(first) for name in tensors if name.startswith(first)]
    converted: Tensors = {}
    for number, layers in enumerate(layers_of_blocks):
        blocks = [block_of_layer[layer] for layer in layers]
        if len({*blocks}) == 1 or rules.sharing == "lower":
            blocks = blocks[:1]
        elif rules.sharing == "stepwise":
            blocks = [block_of_layer[stepwise[number]]]
        for parameter in parameters:
            values = [tensors[f"{prefix}.{block}.{parameter}"] for block in blocks]
            # Own blocks may have buffers of integers, which have no mean.
            value = values[0] if len(values) == 1 else torch.stack(values).mean(0)
            converted[f"{prefix}.{number}.{parameter}"] = value
    return converted


def _layers_of_blocks(
    kind: str, source: EncoderShape, target: EncoderShape, rules: ConversionConfig
) -> list[list[int]]:
    """The layers of the source that each attention or FFN block of the target stands for."""
    before = getattr(source, f"{kind}_groups")
    after = getattr(target, f"{kind}_groups")
    depth = source.num_layers
    if before == after or (
        isinstance(after, int) and after <= depth and (after == 1 or after < target.num_layers)
    ):
        # Groups of consecutive layers, or a repeated pattern, are the same at any depth: layers
        # share first, and then the blocks are used by more or by fewer layers.
        layers = range(depth)
        blocks = getattr(source, f"{kind}_blocks")
        if before != after:
            blocks = [layer * after // depth for layer in layers]
    else:
        layers = _layers_at_depth(depth, target.num_layers, rules)
        blocks = getattr(target, f"{kind}_blocks")
    members = {block: [] for block in sorted({*blocks})}
    for layer, block in zip(layers, blocks, strict=True):
        members[block].append(layer)
    return [*members.values()]


def _layers_at_depth(before: int, after: int, rules: ConversionConfig) -> list[int]:
    """The layer of the source that each layer of the target is.

    Deeper: consecutive copies (A B C becomes A A B B C C) keep a layer's relative depth; the paper
    (Table 11) has only the case of all-shared layers. Shallower: layers at equal distances with the
    first and the last, as DistilBERT's (Sanh et al. 2019, arXiv 1910.01108; for six of twelve
    layers its code has 0, 2, 4, 7, 9, 11), or the first ones.
    """
    if after >= before:
        return [layer * before // after for layer in range(after)]
    return [*range(after)] if rules.layers == "first" else at_equal_distances(before, after)


def at_equal_distances(count: int, chosen: int) -> list[int]:
    """Some of the numbers from 0 to count - 1, the first and the last among them; of one, the
    first.
    """
    return [round(number * (count - 1) / max(chosen - 1, 1)) for number in range(chosen)]


def _convert_embeddings(
    tensors: Tensors, source: EncoderShape, target: EncoderShape, tokens: Tokens
) -> Converted:
    """The tensors with tables, LayerNorm, projection and MLM head of another embedding size.

    A LayerNorm sees the sum x of a token's embeddings without its mean over units, and divided by
    its length. So tables are centred over units and mapped by a matrix that keeps the length of
    what it keeps, with a mean of 0; they grow by sqrt(new size / old size), as the LayerNorm
    divides by the square of the length over the number of units. The new LayerNorm has gain 1 and
    bias 0; a projection does what the old gain, bias and projection did.

    - A larger size keeps all of x, so the input of the first layer is the same. New units are 0,
      but their columns of the projection are drawn as in a new model, or they would have no
      gradient.
    - A smaller size keeps the directions of x that make most of the variance of the first layer's
      input, over tokens as often as the text has them. The projection and its bias are the least
      squares of the old input on the new output of the LayerNorm. This is a truncated SVD in the
      metric of what follows (tables factorised after training: Chen et al. 2018, arXiv 1806.06950).

    One direction of any LayerNorm is taken by its mean: of E units, E - 1 carry information.
    """
    old_size = source.embedding_size
    new_size = target.embedding_size
    hidden = target.hidden_size
    tables = {name: tensors[name].double() for name in (WORDS, TYPES, POSITIONS) if name in tensors}
    centred = {name: table - table.mean(1, keepdim=True) for name, table in tables.items()}
    gain, norm_bias = (tensors[f"{NORM}.{name}"].double() for name in ("weight", "bias"))
    matrix = tensors.get(f"{PROJECTION}.weight", torch.eye(hidden)).double()  # [hidden, old size]
    offset = matrix @ norm_bias + tensors.get(f"{PROJECTION}.bias", torch.zeros(hidden)).double()
    # from a normalised x to the input of the first layer, without the offset
    outward = matrix * gain

    generator = torch.Generator().manual_seed(_SEED)
    # orthonormal columns of mean 0: [new size, new size - 1]
    new_basis = torch.from_numpy(helmert(new_size).T)
    unexplained = None
    if new_size < old_size:
        sums = _draw_sums(centred, torch.from_numpy(tokens(SAMPLED)), generator)
        inputs = F.layer_norm(sums, (old_size,), eps=source.layer_norm_eps) @ outward.T + offset
        half = SAMPLED // 2
        _, directions = torch.linalg.eigh(torch.cov(inputs[:half].T))  # ascending variance
        # Without what no token has, such as the mean over units, which would only take from the
        # length.
        moments = sums.T @ sums
        spanned = torch.linalg.pinv(moments, rtol=1e-10, hermitian=True) @ moments
        kept = spanned @ outward.T @ directions[:, -new_basis.shape[1] :]
        old_basis = torch.linalg.qr(kept).Q  # [old size, new size - 1]
        mapping = (new_size / old_size) ** 0.5 * old_basis @ new_basis.T
        normed = F.layer_norm(sums @ mapping, (new_size,), eps=source.layer_norm_eps) @ new_basis
        design = torch.cat([normed, torch.ones(len(normed), 1)], 1)
        solution = torch.linalg.lstsq(design[:half], inputs[:half]).solution
        projection = solution[:-1].T @ new_basis.T
        offset = solution[-1]
        errors = design[half:] @ solution - inputs[half:]
        unexplained = float(
            errors.square().sum() / (inputs[half:] - inputs[half:].mean(0)).square().sum()
        )
    else:
        old_basis = torch.from_numpy(helmert(old_size).T)
        new_basis = new_basis[:, : old_size - 1]
        mapping = (new_size / old_size) ** 0.5 * old_basis @ new_basis.T
        drawn = target.initializer_range * torch.randn(
            hidden, new_size, generator=generator, dtype=torch.double
        )
        projection = (old_size / new_size) ** 0.5 * outward @ old_basis @ new_basis.T
        projection += drawn - drawn @ new_basis @ new_basis.T

    converted: Tensors = {name: table @ mapping for name, table in centred.items()}
    converted |= {f"{NORM}.weight": torch.ones(new_size), f"{NORM}.bias": torch.zeros(new_size)}
    converted |= {f"{PROJECTION}.weight": projection, f"{PROJECTION}.bias": offset}
    if "mlm_head.dense.weight" in tensors:
        rotation = new_basis @ old_basis.T  # [new size, old size]
        shrink = (old_size / new_size) ** 0.5
        for name in ("dense.weight", "dense.bias", "layer_norm.bias"):
            converted[f"mlm_head.{name}"] = rotation @ tensors[f"mlm_head.{name}"].double()
        converted["mlm_head.layer_norm.bias"] *= shrink
        head_gain = shrink**2 * tensors["mlm_head.layer_norm.weight"].double().mean()
        converted["mlm_head.layer_norm.weight"] = head_gain.expand(new_size)
    dtype = tensors[WORDS].dtype
    return Converted(
        tensors | {name: tensor.to(dtype) for name, tensor in converted.items()}, unexplained
    )


def _draw_sums(tables: Tensors, token_ids: Tensor, generator: torch.Generator) -> Tensor:
    """Sums of embeddings [SAMPLED, size] of tokens of the text, at any position and in either
    segment.
    """

    def draw(count: int) -> Tensor:
        return torch.randint(count, (SAMPLED,), generator=generator)

    sums = tables[WORDS][token_ids[draw(len(token_ids))]]
    for name in (TYPES, POSITIONS):
        if name in tables:
            sums = sums + tables[name][draw(len(tables[name]))]
    return sums
