"""`muniment identity`."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import click

from muniment.cli.failures import Failure
from muniment.cli.groups import Group
from muniment.cli.output import Output, with_output
from muniment.cli.parameters import DURATION, TEXT
from muniment_server.admin.connection import Operator
from muniment_server.admin.database import (
    LEVEL,
    chosen_database,
    operator_of,
    server_option,
    servers_of,
    with_database,
    with_operator,
)
from muniment_server.admin.host_key import (
    SERVICES,
    NameType,
    close_option,
    integrity_option,
    may_option,
    print_line_for_file,
    revoke_key,
    service_for,
    taken_elsewhere,
)
from muniment_server.admin.host_keys import Identity, create_host_key, list_host_keys
from muniment_server.domain.classification import Classification, Integrity
from muniment_server.domain.ids import RandomIds
from muniment_server.runtime.configuration import DatabaseConfig

_SPIFFE = "spiffe://"
_SPIFFE_ID = re.compile(r"(?P<domain>spiffe://[a-z0-9._-]{1,255})(/(?!\.{1,2}(/|$))[A-Za-z0-9._-]+)+")
_CERTIFICATE = "certificate"
"""Where the keys are: see muniment_identity.file."""
_MOST_CHARACTERS = 512
_COLUMNS = (
    "identity_id", "tenant", "ceiling", "only_service", "integrity", "may_declassify", "may_endorse", "issuer",
    "audience", "subject", "keys", "create_time", "expire_time", "freeze_time", "revoke_time", "name",
)  # fmt: skip


class _ClaimType(click.ParamType[str]):
    """What a claim of a token must be, to the letter: printable ASCII, which has no two spellings of one text."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not (text.isascii() and text.isprintable() and 1 <= len(text) <= _MOST_CHARACTERS):
            self.fail(f"must have 1 to {_MOST_CHARACTERS} printable ASCII characters", param, ctx)
        return text


_CLAIM = _ClaimType()


@click.group(cls=Group)
def identity() -> None:
    """Identities: hosts that call by the tokens of another issuer, in place of a host key.

    A token stands for an identity if its `iss`, `aud` and `sub` are those named here, and one of the issuer's keys has
    signed it. SPIFFE's JWT-SVIDs are such tokens. With `--certificate`, an X.509-SVID counts.
    `muniment serve --identities` accepts them.

    \b
    Examples:
      muniment identity add --issuer https://login.example --audience muniment --subject chatbot \\
          --keys https://login.example/jwks.json --tenant acme --ceiling confidential --only sessions
      muniment identity list
    """


@identity.command
@click.option("--issuer", required=True, type=_CLAIM, help="The tokens' `iss`, or a trust domain: spiffe://DOMAIN.")
@click.option("--audience", type=_CLAIM, help="What the tokens must be for: one of their `aud`.")
@click.option("--subject", required=True, type=_CLAIM, help="The tokens' `sub`, to the letter.")
@click.option(
    "--keys",
    metavar="URL|FILE",
    help="The issuer's JWKS: an https URL, or a file that each server has. OIDC names it `jwks_uri`.",
)
@click.option(
    "--certificate",
    is_flag=True,
    help="Accept a certificate with the subject as its SPIFFE id, in place of tokens. Without --audience and --keys.",
)
@click.option("--tenant", required=True, type=TEXT, help="The tenant of the host. It is created if it does not exist.")
@click.option("--ceiling", required=True, type=LEVEL, help="The highest level it may open or raise a session to.")
@click.option("--name", type=NameType(), help="What the host is for, such as chatbot. Lists of events show it.")
@click.option(
    "--expires-in", "lifetime", type=DURATION, help="How long it is accepted, such as 90d. The default is forever."
)
@click.option("--only", type=click.Choice(list(SERVICES)), help="The one thing it is for. The default is everything.")
@integrity_option
@may_option
@with_database(servers=True)
@server_option
@with_output
def add(
    output: Output,
    config: DatabaseConfig,
    issuer: str,
    audience: str | None,
    subject: str,
    keys: str | None,
    certificate: bool,
    tenant: str,
    ceiling: Classification,
    name: str | None,
    lifetime: timedelta | None,
    only: str | None,
    integrity: Integrity,
    may: tuple[str, ...],
    server: str | None,
) -> None:
    """Accept the tokens of one subject as a host of a tenant.

    Servers know it within seconds.

    \b
    Examples:
      muniment identity add --issuer https://login.example --audience muniment --subject chatbot \\
          --keys https://login.example/jwks.json --tenant acme --ceiling confidential --only sessions
      muniment identity add --issuer spiffe://prod.example --subject spiffe://prod.example/chatbot \\
          --audience muniment --keys /run/spire/bundle.json --tenant acme --ceiling internal
      muniment identity add --issuer spiffe://prod.example --subject spiffe://prod.example/chatbot --certificate \\
          --tenant acme --ceiling internal
    """
    named = _named(issuer, audience, subject, keys, certificate=certificate)
    taken = taken_elsewhere(config, server, tenant)
    chosen = chosen_database(config, server)
    for database in [*servers_of(config).values()] or [chosen]:
        with operator_of(database) as operator:
            _require_new(operator, named)
    with operator_of(chosen) as operator:
        identity_id, thrown_away = create_host_key(
            operator,
            tenant=tenant,
            ceiling=ceiling,
            name=name,
            lifetime=lifetime,
            only_service=service_for(only, integrity, may),
            integrity=integrity,
            may=may,
            identity=named,
            taken=taken,
            ids=RandomIds(),
        )
    if server is not None:
        print_line_for_file(config, server, thrown_away)
    row = {"identity_id": identity_id, "tenant": tenant, "ceiling": ceiling, **asdict(named)}
    output.record(row, tuple(row))


def _named(issuer: str, audience: str | None, subject: str, keys: str | None, *, certificate: bool) -> Identity:
    """The identity. Raises Failure if none could ever call as it, or the keys cannot be had safely."""
    if issuer.startswith(_SPIFFE):
        if (found := _SPIFFE_ID.fullmatch(subject)) is None or found["domain"] != issuer:
            raise Failure(
                f"{subject} is not in the trust domain {issuer}",
                "give --issuer spiffe://DOMAIN --subject spiffe://DOMAIN/NAME",
            )
    elif not issuer.startswith("https://"):
        raise Failure(
            f"{issuer} is not an issuer", "give an https URL, or a trust domain such as spiffe://prod.example"
        )
    if certificate and issuer.startswith(_SPIFFE) and audience is None and keys is None:
        return Identity(issuer, "", subject, _CERTIFICATE)
    if certificate or audience is None or keys is None:
        raise Failure(
            "tokens or certificates?", "give --audience and --keys, or a trust domain as --issuer and --certificate"
        )
    if "://" not in keys and not keys.startswith("https:"):
        return Identity(issuer, audience, subject, str(Path(keys).absolute()))
    if not _is_fetchable(keys):
        raise Failure(f"keys are not fetched from {keys}", "give an https URL, such as https://HOST/PATH, or a file")
    return Identity(issuer, audience, subject, keys)


def _is_fetchable(url: str) -> bool:
    """Whether it has the form of an https URL. No credential: it would stand in lists and logs, and is not sent."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises ValueError
    except ValueError:
        return False
    is_plain = url.isascii() and url.isprintable() and " " not in url and "@" not in parts.netloc
    return is_plain and url.startswith("https://") and bool(parts.hostname)


def _require_new(operator: Operator, named: Identity) -> None:
    """Raise Failure if the same tokens stand for another identity already: they would stand for none."""
    for key in list_host_keys(operator):
        if key.revoke_time is None and (key.issuer, key.audience, key.subject) == (
            named.issuer, named.audience, named.subject,
        ):  # fmt: skip
            raise Failure(
                f"{named.subject} of {named.issuer} is an identity of {key.tenant} already",
                f"remove it first: muniment identity remove {key.host_key_id}",
            )


@identity.command("list")
@with_output
@with_operator
def list_(operator: Operator, output: Output) -> None:
    """List all identities, including expired and removed ones.

    \b
    Examples:
      muniment identity list
      muniment identity list --json
    """
    found = ({"identity_id": key.host_key_id, **asdict(key)} for key in list_host_keys(operator) if key.issuer)
    output.rows(({name: row[name] for name in _COLUMNS} for row in found), _COLUMNS)


@identity.command
@click.argument("identity_id", metavar="ID", type=click.UUID)
@close_option
@with_operator
def remove(operator: Operator, identity_id: UUID, close: bool | None) -> None:
    """Remove an identity. Its next call fails, and so does that of a session that it opened, if you close these.

    \b
    Examples:
      muniment identity remove 5f0c1fb2-9c2e-4a53-9d3b-0f6c2f3d1a77
      muniment identity remove 5f0c1fb2-9c2e-4a53-9d3b-0f6c2f3d1a77 --close-sessions
    """
    revoke_key(operator, identity_id, close)
