"""The door of HTTP: a process that takes calls as JSON, by Connect or by gRPC-Web, and makes them at a Muniment server.

It knows no RPC by name and allows nothing: it holds no credential and sees no database, and the server checks whatever
it sends like any other call.
"""
