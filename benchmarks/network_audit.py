"""Does anything but the server hear of a federation? A whole training in a network of its own.

    python -m benchmarks.network_audit        (as root, on Linux, with `unshare` and `ip`)

The network has a loopback, by which parties reach their server, and a way to everywhere else, on which every
packet is counted: a name that is looked up, a version that is asked for, a word to some collector. One packet
is sent by us first, so that a count of nothing means something. The training must finish, and the count must
stay where it was. Connections on the loopback are listed by the port that they go to.
"""

import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.real_parties import RealParties, in_background, write_files
from cofactor.network.sources import RatingsSource
from cofactor.network.training_terms import TrainingWork
from cofactor.privacy.budget import Budget
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.sums import SecureSum

_NETWORK = (
    "ip link set lo up",
    "ip link add away type veth peer name world",
    "ip addr add 192.0.2.2/24 dev away",
    "ip link set away up",
    "ip link set world up",
    "ip neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 dev away",
    "ip route add default via 192.0.2.1",
)


def main() -> None:
    if "inside" not in sys.argv:
        sys.exit(subprocess.run(["unshare", "-n", sys.executable, "-m", __spec__.name, "inside"]).returncode)
    for command in _NETWORK:
        subprocess.run(command.split(), check=True)
    for file in ("all", "default"):
        Path(f"/proc/sys/net/ipv6/conf/{file}/disable_ipv6").write_text("1")
    before = sent()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.sendto(b"do you see me?", ("198.51.100.1", 9))
    control = sent()
    print(f"packets that left before the training: {before}, and after one of our own: {control}")
    ports = trained()
    after = sent()
    print(f"packets that left during a training between 3 parties: {after - control}")
    print(f"ports that processes were connected to: {', '.join(sorted(ports))}")
    sys.exit(0 if control == before + 1 and after == control else 1)


def sent() -> int:
    """Return how many packets have left for anywhere else."""
    (line,) = (line for line in Path("/proc/net/dev").read_text().splitlines() if "away:" in line)
    return int(line.split(":")[1].split()[9])


def trained() -> set[str]:
    """Train three parties, and return to which ports processes were connected meanwhile."""
    ports: set[str] = set()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        sources = {
            name: (RatingsSource(file=str(file), scale="1:5"),) for name, file in write_files(folder).items()
        }
        recipe = HorizontalMF(factors=8, rounds=10, aggregate=SecureSum(dropout=0.0))
        budget = Budget(epsilon=4.0, delta=1e-5, unit="user")
        work = TrainingWork(split="horizontal", recipe=recipe, budget=budget, scale=(1.0, 5.0))
        with RealParties(folder / "federation", sources) as federation:
            hosted = federation.begin(federation.proposal(work.table()))
            thread, found = in_background(lambda: federation.run(hosted))
            while thread.is_alive():
                ports |= {_named(peer, federation.port) for peer in connected()}
                thread.join(0.2)
        assert found["outcome"] == "finished", found
    return ports


def connected() -> set[tuple[str, str]]:
    """Return where established connections go to: address and port."""
    found = subprocess.run(["ss", "-Htn", "state", "established"], capture_output=True, text=True, check=True)
    peers = (re.split(r"\s+", line.strip())[3] for line in found.stdout.splitlines())
    return {tuple(peer.rsplit(":", 1)) for peer in peers}


def _named(peer: tuple[str, str], server: int) -> str:
    address, port = peer
    assert address.startswith(("127.", "[::1]", "[::ffff:127.")), address
    return "the server's" if port == str(server) else "others on this machine (a site's own processes)"


if __name__ == "__main__":
    main()
