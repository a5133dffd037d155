from dataclasses import replace

import numpy as np
import pytest

from cofactor.attacks.uploads import uploads, with_laplace
from cofactor.errors import ConfigError, RunError
from cofactor.federation.door import SUM
from cofactor.privacy.budget import Budget
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.sums import IdealSum, PlainSum
from tests.attacks.devices import ITEMS, KINDS, PLAIN, USERS, captured, devices, made, table

QUICK = replace(PLAIN, rounds=2)


def test_uploads_are_the_equations_of_the_paper() -> None:
    run = captured(QUICK)
    assert run.captured is not None
    seen = uploads(run.captured.view("coordinator"))
    assert [each.sender for each in seen] == [f"device-{k:02}" for k in range(USERS)]
    assert {each.round for each in seen} == {2}
    for user, each in enumerate(seen):
        row = table()[user]
        np.testing.assert_array_equal(each.sent_items, ~np.isnan(row))
        assert each.sent_attributes.all()
        first = np.flatnonzero(each.sent_items)[0]
        # (r - p.q) p is along p, and so the row of another item is a multiple of it.
        other = np.flatnonzero(each.sent_items)[1]
        crossed = np.outer(each.item_rows[first], each.item_rows[other])
        np.testing.assert_allclose(crossed, crossed.T, atol=1e-3 * np.abs(crossed).max() + 1e-9)
    assert seen[0].known.unrated == QUICK.unrated
    assert (seen[0].known.penalty, seen[0].known.update) == (1.0, "semi-als")
    assert not seen[0].known.everywhere


def test_rounds_can_be_named() -> None:
    run = captured(QUICK)
    assert run.captured is not None
    view = run.captured.view("coordinator")
    assert {each.round for each in uploads(view, round=1)} == {1}
    with pytest.raises(ConfigError, match=r"saw no ViewGradients of MultiViewMF in round 9"):
        uploads(view, round=9)
    cut = replace(view, seen=tuple(each for each in view.seen if each.kind != "ViewsAsked"))
    with pytest.raises(RunError, match="without its question, ViewsAsked"):
        uploads(cut)


def test_a_sum_is_taken_for_an_upload() -> None:
    run = captured(replace(QUICK, aggregate=IdealSum(dropout=0.2, colluding=0.1)))
    assert run.captured is not None
    [seen] = uploads(run.captured.view("coordinator"))
    assert (seen.sender, seen.users, seen.known.everywhere) == (SUM, USERS, True)
    single = captured(QUICK).captured
    assert single is not None
    rows = np.mean([each.item_rows for each in uploads(single.view("coordinator"), round=1)], axis=0)
    [first] = uploads(run.captured.view("coordinator"), round=1)
    np.testing.assert_allclose(first.item_rows, rows, atol=1e-5)


def test_under_a_budget_noise_is_in_all_rows() -> None:
    run = captured(QUICK, budget=Budget(epsilon=2.0, delta=1e-6, unit="user"))
    assert run.captured is not None
    seen = uploads(run.captured.view("coordinator"))
    assert all(each.known.everywhere and each.sent_items.all() for each in seen)


def test_gradients_of_devices_are_read_too() -> None:
    run = captured(OnDeviceMF(factors=3, rounds=2, aggregate=PlainSum()), devices(attributes=False))
    assert run.captured is not None
    seen = uploads(run.captured.view("coordinator"))
    assert len(seen) == USERS
    np.testing.assert_array_equal(seen[0].sent_items, ~np.isnan(table()[0]))
    assert seen[0].known.longest == pytest.approx(1.0)
    assert np.linalg.norm(seen[0].item_rows, axis=1).max() <= 1.01
    # Vectors of devices are not negative, and rows are multiples of them.
    for each in seen:
        top = each.item_rows[np.abs(each.item_rows).sum(axis=1).argmax()]
        assert (top > -1e-2).all() or (top < 1e-2).all()


def test_noise_is_on_what_was_sent_alone() -> None:
    upload, _, _ = made(KINDS[0])
    noisy = with_laplace(upload, 0.5, np.random.default_rng(0))
    np.testing.assert_array_equal(noisy.sent_items, upload.sent_items)
    added = (noisy.item_rows - upload.item_rows)[upload.sent_items]
    assert noisy.noise == 0.5
    # 20 ratings or so of 4 numbers: the mean size of Laplace noise is its scale.
    assert np.abs(added).mean() == pytest.approx(0.5, rel=0.5)
    assert with_laplace(upload, 0.0, np.random.default_rng(0)) is upload
    with pytest.raises(ConfigError, match="scale"):
        with_laplace(upload, -1.0, np.random.default_rng(0))


def test_a_view_without_messages_says_how_to_capture_them() -> None:
    run = captured(QUICK)
    assert run.captured is not None
    with pytest.raises(ConfigError, match=r'payloads were not captured.*capture="coordinator"'):
        uploads(run.captured.view("public"))


def test_other_recipes_are_refused_by_name() -> None:
    run = captured(SharedBiases(aggregate=IdealSum(dropout=0.2, colluding=0.1)), budget=None)
    assert run.captured is not None
    with pytest.raises(ConfigError, match="MultiViewMF and OnDeviceMF send, and this is SharedBiases"):
        uploads(run.captured.view("coordinator"))


def test_a_party_sees_no_uploads_of_others() -> None:
    run = captured(QUICK)
    assert run.captured is not None
    view = run.captured.view("coordinator")
    asked = replace(view, roles=("party:x",), seen=tuple(e for e in view.seen if e.kind == "ViewsAsked"))
    with pytest.raises(ConfigError, match="party:x saw no ViewGradients"):
        uploads(asked)
    assert view.items == ITEMS
