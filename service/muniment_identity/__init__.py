"""The identities of hosts that others vouch for: by a JSON Web Token, such as of OIDC or SPIFFE.

An identity is a host key whose secret was thrown away. `refresher` is a process of its own: it fetches the public keys
of the issuers, and writes what workers need into a file. `verifier` reads that file in each worker: a call causes no
query and no request to others. What a host may do stands in the row of its key, which each call looks up like any.
"""
