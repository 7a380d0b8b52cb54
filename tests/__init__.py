"""Tests of Muniment."""
