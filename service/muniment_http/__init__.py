"""The HTTP gateway: a process that forwards calls in JSON, by Connect or by gRPC-Web, to a Muniment server.

It has no code for single RPCs, and decides nothing: it holds no credential and opens no database, and the server checks
what it forwards like any other call.
"""
