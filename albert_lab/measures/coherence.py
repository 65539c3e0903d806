"""Coherence: SOP minus SOP across documents, the part of SOP that is told by the relation of the two segments."""

from albert_lab.measures.measure import Difference

MEASURE = Difference("coherence", "coherence", in_curves=True, of="sop_accuracy", minus="sop_across_documents")
