from tidings.log.position import Offset, Partition, Position, PositionRange


def test_a_run_is_the_list_of_its_positions() -> None:
    run = PositionRange(Partition(3), range(7, 10))
    listed = [Position(Partition(3), Offset(n)) for n in (7, 8, 9)]
    assert list(run) == listed
    assert (run[0], run[-1], len(run), list(run[1:])) == (listed[0], listed[-1], 3, listed[1:])
    assert listed[1] in run and not PositionRange(Partition(3), range(7, 7))
