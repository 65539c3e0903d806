"""What all records in files share."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A part of a file: frozen, without unknown keys and without numbers that are not finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
