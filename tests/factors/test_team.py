import threading

import pytest

from cofactor.factors.team import Team, team_size


def test_every_part_is_done_once_and_the_caller_does_the_first() -> None:
    done: dict[int, int] = {}

    def work(part: int) -> None:
        done[part] = threading.get_ident()

    with Team(3) as team:
        team.together(work)
    assert sorted(done) == [0, 1, 2]
    assert done[0] == threading.get_ident()


def test_parts_run_at_the_same_time() -> None:
    meeting = threading.Barrier(2, timeout=30)
    with Team(2) as team:
        team.together(lambda _: (meeting.wait(), None)[1])


def test_no_thread_outlives_its_team() -> None:
    before = set(threading.enumerate())
    meeting = threading.Barrier(3, timeout=30)
    with Team(3) as team:
        team.together(lambda _: (meeting.wait(), None)[1])
        others = set(threading.enumerate()) - before
    assert len(others) == 2
    # The team is still at hand, so that it is not its removal that ends them.
    assert team.size == 3
    assert not any(thread.is_alive() for thread in others)


def test_an_error_in_another_thread_reaches_the_caller() -> None:
    def work(part: int) -> None:
        if part == 1:
            raise ValueError("part 1")

    with Team(2) as team, pytest.raises(ValueError, match="part 1"):
        team.together(work)


def test_few_ratings_get_one_thread_unless_more_are_asked_for() -> None:
    assert team_size(None, ratings=1_000) == 1
    assert team_size(4, ratings=1_000) == 4
    assert team_size(20, ratings=1_000, most=8) == 8
