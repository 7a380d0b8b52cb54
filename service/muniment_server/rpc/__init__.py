"""gRPC: the walls that every call passes, and the servicers behind them."""
