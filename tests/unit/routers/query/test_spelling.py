"""What a misspelt word is taken for."""

from metatree_routers.query.spelling import meant


def test_a_letter_that_is_missing_is_likelier_than_another_letter() -> None:
    assert meant("vlid", {"void": 90, "valid": 3}, 1) == "valid"
    assert meant("recieve", {"receive": 1, "relieve": 50}, 1) == "receive"
    assert meant("cinnect", {"connect": 1}, 1) == "connect"
