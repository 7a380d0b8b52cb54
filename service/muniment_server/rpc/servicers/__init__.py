"""One servicer for each service of the contract. A method is the use case: decode, one store call, encode."""
