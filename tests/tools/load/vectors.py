"""Embeddings for many texts: the model's for the first ones, and for the others vectors drawn around those.

The model takes a twentieth of a second for one text, and so half a day for a million.
"""

from __future__ import annotations

import math
import random
import threading

from muniment_server.embedder.e5.model import Model
from muniment_server.search.embeddings import LENGTH, Vector

NEAR = 0.9
"""The cosine between a drawn vector and the real one that it is drawn around, about."""
_AWAY = math.sqrt(1 - NEAR**2)


class Vectors:
    """The embeddings of a store. At least 2 are real."""

    def __init__(self, real: int) -> None:
        self.drawn = 0
        self._left = max(2, real)
        self._real: list[Vector] = []
        self._model = Model()
        self._random = random.Random(1)
        self._lock = threading.Lock()

    def embed(self, text: str) -> Vector:
        """The model's vector of the first texts, and a drawn one for others."""
        with self._lock:
            is_real = self._left > 0 or len(self._real) < 2
            self._left -= is_real
        if not is_real:
            return self.draw(text)
        vector = self._model.embed_chunk(text)
        self._real.append(vector)
        return vector

    def draw(self, _: str) -> Vector:
        """A vector near one real vector, moved towards another."""
        with self._lock:
            self.drawn += 1
            near, towards = self._random.sample(self._real, 2)
        mixed = [NEAR * one + _AWAY * other for one, other in zip(near, towards, strict=True)]
        scale = LENGTH / math.hypot(*mixed)
        return [round(component * scale) for component in mixed]
