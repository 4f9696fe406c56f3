"""Processes of the measurement: started in sessions of their own, measured by the kernel's clocks, ended by id."""

import os
import signal
import socket
import subprocess
import time


class Processes:
    """Everything that was started. Leaving the `with` block ends all of it, whatever the way out."""

    def __init__(self):
        self._running = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # A second Ctrl-C must not leave the other half running.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for process in list(self._running):
            self.end(process)

    def start(self, command, log, **options):
        """Starts a command whose output goes to the file `log`; it leads a session, so that its tree can be found."""
        with open(log, "ab") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, start_new_session=True,
                **{"stdout": output, "stderr": output, **options})
        self._running.append(process)
        return process

    def end(self, process):
        """Asks the whole group to end, and after three seconds makes it."""
        for signal_number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, signal_number)
            except ProcessLookupError:
                break
            deadline = time.monotonic() + 3
            # The leader is reaped by poll(); members that outlive it still hold the group.
            while process.poll() is None or members(process.pid):
                if time.monotonic() > deadline:
                    break
                time.sleep(0.02)
            else:
                break
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()
        if process in self._running:
            self._running.remove(process)


def _stat(pid):
    """The fields of proc(5)'s stat that follow the command name, or None for a process that is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def members(session):
    """The living processes of a session, without zombies."""
    found = []
    for name in os.listdir("/proc"):
        fields = _stat(name) if name.isdigit() else None
        if fields and int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(name))
    return found


def process_cpu_seconds(pid):
    """CPU time of one process so far, user and system, threads that ended included, without its children.

    The clock of a process (clock_getcpuclockid(3)) has nanoseconds where stat has ticks, and counts ended threads,
    which schedstat forgets. The layout of its id is the kernel's ABI: the complement of the process's, then 2 for the
    scheduler's clock.
    """
    return time.clock_gettime((~pid << 3) | 2)


def cpu_seconds(session):
    """CPU time of a session's processes so far, with the children that they waited for, whose time comes in ticks."""
    total = 0.0
    for pid in members(session):
        fields = _stat(pid)
        if fields:
            total += process_cpu_seconds(pid)
            total += (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    return total


def resident_kib(session):
    """Resident memory of a session's processes in KiB (VmRSS of proc(5))."""
    total = 0
    for pid in members(session):
        try:
            with open(f"/proc/{pid}/status") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return total


def free_ports(count):
    """Different ports of 127.0.0.1 that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def find(*names):
    """The first of the commands that exists, also where only root's PATH looks."""
    for name in names:
        for folder in os.environ.get("PATH", "").split(":") + ["/usr/sbin", "/sbin", "/usr/local/sbin"]:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
    return None
