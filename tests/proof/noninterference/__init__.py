"""Two worlds that differ only above an observer must look the same to it; and every guard, removed, must be missed."""
