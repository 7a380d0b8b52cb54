"""The console: read-only web pages for auditors and support, with the rights of one host key and no others.

It is a client of a server, like `muniment agent show`. So it can show what the key may see, and each look at items is
audited. `guards` refuses requests before any page is read.
"""
