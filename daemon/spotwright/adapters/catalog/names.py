"""Names of one kind, numbered in their order and found in any case."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.errors import UnknownNameError


class Names:
    """Sorted names; a name's code is its place, so that codes sort as the names do."""

    def __init__(self, kind: str, names: Iterable[str]) -> None:
        self._kind = kind
        self.sorted = tuple(sorted(set(names)))
        self.codes = {name: code for code, name in enumerate(self.sorted)}
        self._codes_folded = {name.lower(): code for code, name in enumerate(self.sorted)}

    def code(self, name: str) -> int:
        """Return the code of a name in any case, or raise UnknownNameError with the nearest."""
        code = self._codes_folded.get(name.lower())
        if code is None:
            raise UnknownNameError(self._kind, name, known=self.sorted)
        return code

    def mask(self, wanted: Iterable[str]) -> NDArray[np.bool_]:
        """Return True at the codes of the wanted names."""
        mask = np.zeros(len(self.sorted), dtype=np.bool_)
        mask[[self.code(name) for name in sorted(wanted)]] = True
        return mask
