"""What a token may do: which scope includes which, where it counts; and what a token looks like. Nobody is asked."""

from __future__ import annotations

import pytest

from fencerow.web import Grant, Scope
from fencerow.web.tokens.secret import hash_of, known_shape, new_token

MAY = {
    Scope.SUBMIT: {Scope.SUBMIT},
    Scope.SIGNAL: {Scope.SIGNAL},
    Scope.READ: {Scope.READ},
    Scope.CANCEL: {Scope.CANCEL},
    Scope.OPERATE: {Scope.OPERATE, Scope.SIGNAL, Scope.READ, Scope.CANCEL},
    Scope.ADMIN: set(Scope),
}


@pytest.mark.parametrize("given", Scope)
def test_a_scope_lets_do_itself_and_what_it_includes(given: Scope) -> None:
    grant = Grant("id", "name", frozenset({given}))

    assert {scope for scope in Scope if grant.may(scope)} == MAY[given]


def test_a_token_for_queues_reaches_nothing_else() -> None:
    everywhere = Grant("id", "name", frozenset({Scope.READ}))
    bound = Grant("id", "name", frozenset({Scope.READ}), frozenset({"mail"}))

    assert everywhere.reaches("mail") and everywhere.reaches_all
    assert bound.reaches("mail") and not bound.reaches("docs") and not bound.reaches_all


def test_tokens_have_256_random_bits_and_one_way_to_be_written() -> None:
    made = {new_token() for _ in range(1000)}

    assert len(made) == 1000
    assert all(known_shape(token) and len(token) == len("fct_") + 43 for token in made)
    assert len({hash_of(token) for token in made}) == 1000


@pytest.mark.parametrize("wrong", ["", "fct_", "x" * 47, None, 7, b"fct_"])
def test_what_cannot_be_a_token_is_none(wrong: object) -> None:
    token = new_token()
    other_last = {**dict.fromkeys("AEIMQUYcgkosw048", "B")}[token[-1]]  # carries bits that no token has

    assert not known_shape(wrong)
    for near in (token[:-1], token + "A", token + "\n", f" {token}", token.upper(), token[:-1] + other_last):
        assert not known_shape(near)
