"""Races: what holds when calls meet. Thousands of scheduled meetings, and for each kind a mutant that loses one."""
