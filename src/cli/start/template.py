"""A Python process that has imported what the programs of a job import, and forks itself into them (see main.cpp).

maya-start runs it with the interpreter, options and environment of the first program it was asked to start:

    python [options] template.py PATH.sock FD MODULES ROOM

It listens on PATH.sock and writes a byte to FD once it does. A request holds words, environment, directory and descriptors
of a program; the child installs them and runs the program as the interpreter would. What a fork cannot reproduce is
refused, and maya-start then starts the program plainly:

- a variable that was read while importing has another value in the program's environment;
- a module imported here would have been found elsewhere, next to the program.

What programs import beyond torch is learned: a child leaves the names of its modules when it ends, and those that lie in
site-packages are imported here, after a child of their own has tried them. A module that starts a thread, uses the device
or asks who it is (RANK …) while it is imported is left to the programs. The file MODULES keeps the names for later.
"""

import sys

AT_START = set(sys.modules)

import atexit  # noqa: E402
import ctypes  # noqa: E402
import fcntl  # noqa: E402
import os  # noqa: E402
import select  # noqa: E402
import signal  # noqa: E402
import socket  # noqa: E402
import struct  # noqa: E402
import types  # noqa: E402

REFUSED, STARTED, OTHER_ENVIRONMENT = 0, 1, 2
SCRIPT, MODULE, CODE = 1, 2, 3

# Prefixes of variables that libraries read when they are loaded, by iterating over the whole environment.
BY_LIBRARIES = ("OMP_", "GOMP_", "KMP_", "MKL_", "LC_", "LANG")
# Variables that identify a process. A module that reads one of them while it is imported is not imported here.
PLACE = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "NODE_RANK", "ROLE_RANK",
         "ROLE_WORLD_SIZE", "ROLE_NAME", "MASTER_ADDR", "MASTER_PORT", "MAYA_RUN_DIR", "MAYA_RANKS", "MAYA_PLACES",
         "MAYA_RANK_PROCESS", "MAYA_SEARCH_TRIAL")
PLACE_STARTS = ("TORCHELASTIC_", "PET_", "SLURM_", "OMPI_", "PMI_", "PMIX_")
# Variables that shells and launchers change and that influence no program.
PASSING = ("_", "PWD", "OLDPWD", "SHLVL", "MAYA_START_MAIN", "MAYA_START_DIR")
# Packages that iterate over all variables to find those with their own prefix.
PREFIXES_OF = {"tqdm": "TQDM_", "networkx": "NETWORKX_"}
LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "torch.distributed.run", "torch.distributed.launch")


def is_place(name):
    return name in PLACE or name.startswith(PLACE_STARTS)


class Watched(dict):
    """The storage of os.environ while modules are imported. Records the names that they read."""

    def __init__(self, data):
        super().__init__(data)
        self.given = dict(data)
        self.read, self.prefixes, self.whole = set(), set(), False

    def __getitem__(self, key):
        caller = sys._getframe(1).f_back  # behind os._Environ.__getitem__
        if caller is None or not caller.f_code.co_filename.endswith("_collections_abc>"):
            self.read.add(os.fsdecode(key))
        return dict.__getitem__(self, key)

    def __iter__(self):
        frame, prefix = sys._getframe(1), None
        for _ in range(5):
            if frame is None or prefix:
                break
            prefix = PREFIXES_OF.get(frame.f_globals.get("__name__", "").partition(".")[0])
            frame = frame.f_back
        if prefix:
            self.prefixes.add(prefix)
        else:
            self.whole = True
        return dict.__iter__(self)

    def note_reads(self, device):
        """Adds the names that C and C++ code has read with getenv."""
        self.read.update(device.variables_read())

    def decides(self, name):
        """Whether the imports could have had another result with another value of this variable."""
        if name in PASSING:
            return False
        if name in self.read or name.startswith(tuple(self.prefixes)):
            return True
        return (self.whole or name.startswith(BY_LIBRARIES)) and not is_place(name)

    def differs(self, asked):
        """The variables that influence imports and have another value in `asked` than in this process."""
        return [os.fsdecode(key) for key in sorted(set(self.given) | set(asked))
                if self.given.get(key) != asked.get(key) and self.decides(os.fsdecode(key))]

    def applied_to(self, asked):
        """The program's environment after its imports, which may set variables themselves."""
        now = dict(asked)
        for key in set(self.given) | set(dict.keys(self)):
            value = dict.get(self, key)
            if self.given.get(key) != value and value is None:
                now.pop(key, None)
            elif self.given.get(key) != value:
                now[key] = value
        return now


def name_process(name):
    """The name that /proc and `ps` show. maya run leaves processes named maya-template alone when it ends a job."""
    ctypes.CDLL(None).prctl(15, ctypes.c_char_p(name))  # PR_SET_NAME


class Device:
    """The emulated device of this process, which must not be in use before a fork."""

    def __init__(self):
        self.library = ctypes.CDLL("libmaya_device.so")

    def watch_variables(self):
        self.library.maya_watch_variables(True)

    def variables_read(self):
        """Names read with getenv since watch_variables."""
        self.library.maya_variables_read.restype = ctypes.c_char_p
        return {os.fsdecode(name) for name in self.library.maya_variables_read().split(b"\n") if name}

    def used(self):
        return self.library.maya_device_used() != 0

    def leave_run(self):
        """The run that made this process may end, and its directory be used again, while this process lives."""
        self.library.maya_leave_run()

    def start_again(self):
        self.library.maya_start_again()


def threads():
    return len(os.listdir("/proc/self/task"))


def has_children():
    with open("/proc/self/task/%d/children" % os.getpid()) as file:
        return bool(file.read().split())


def lines_of(path):
    try:
        with open(path) as file:
            return file.read().split()
    except OSError:
        return []


class Template:
    def __init__(self, path, modules_file):
        self.modules_file, self.learned_file = modules_file, path + ".learned"
        self.results_file, self.plain_file = path + ".tried", path + ".plain"
        self.environment = Watched(os.environ._data)
        os.environ._data = self.environment
        self.device = Device()
        self.device.watch_variables()
        self.bad, self.names, self.trying = [], [], None
        for name in ["numpy", "torch"] + lines_of(modules_file):
            self.bring(name)
        if "torch" not in sys.modules or self.device.used() or has_children():
            try:
                os.unlink(modules_file)  # from another version of a package: learned again
            except OSError:
                pass
            sys.exit("what this template imports does not fork")

    @staticmethod
    def bring(name):
        words, sys.argv = sys.argv, [""]
        try:
            __import__(name)
            return True
        except BaseException as error:  # a module may even exit
            print("cannot import", name, repr(error), flush=True)
            return False
        finally:
            sys.argv = words

    def forks_well(self, name):
        """Imports a module in a child process as a trial, and returns whether it may be imported before a fork."""
        self.environment.note_reads(self.device)
        before, read = threads(), set(self.environment.read)
        if not self.bring(name):
            return False
        self.environment.note_reads(self.device)
        asked = self.environment.read - read
        return threads() <= before and not has_children() and not self.device.used() and not any(map(is_place, asked))

    def try_learned(self):
        """Starts a child that imports the modules that programs have imported. It ends at the first one that does not
        support fork."""
        names = [name for name in lines_of(self.learned_file) if name not in sys.modules
                 and not any(name == bad or name.startswith(bad + ".") for bad in self.bad)]
        if not names or self.trying or len(self.bad) > 20:
            return
        self.names, self.trying = names, os.fork()
        if self.trying:
            return
        with open(self.results_file, "w") as results:
            for name in names:
                if not self.forks_well(name):
                    break
                results.write(name + "\n")
        os._exit(0)

    def take_results(self):
        """Returns true if there are more modules to try."""
        good = lines_of(self.results_file)
        self.bad += self.names[len(good) :][:1]
        self.trying = None
        known = lines_of(self.modules_file)
        # Other templates, of this search and of others, write the same file.
        new = "%s.%d" % (self.modules_file, os.getpid())
        try:
            with open(new, "w") as file:
                file.write("".join(name + "\n" for name in known + [name for name in good if self.bring(name)]))
            os.replace(new, self.modules_file)
        except OSError as error:  # only later templates would gain; the programs of this one must go on
            print("cannot keep the names of modules:", error, flush=True)
        return len(good) < len(self.names)

    def shadowed(self, directory):
        """Whether a module imported here would have been found in `directory`, the first of the program's path."""
        if directory is None:
            return False
        names = {name.partition(".")[0] for name in set(sys.modules) - AT_START - {"__main__"}}
        try:
            entries = os.listdir(directory or ".")
        except OSError:
            return True
        found = [entry for entry in entries if entry.partition(".")[0] in names and (
            entry.endswith((".py", ".pyc", ".so")) or os.path.exists(os.path.join(directory, entry, "__init__.py")))]
        if found:
            print("next to the program:", *found, flush=True)
        return bool(found)

    def verdict(self, request):
        self.environment.note_reads(self.device)
        different = self.environment.differs(request.environment)
        if different:
            print(request.program(), "has other variables:", *different, flush=True)
            return OTHER_ENVIRONMENT
        if self.shadowed(request.first_path()) or request.program() in lines_of(self.plain_file):
            print(request.program(), "starts plainly", flush=True)
            return REFUSED
        return STARTED


class Request:
    def __init__(self, connection):
        data, control, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(4 * 256), socket.MSG_CMSG_CLOEXEC)
        self.received = []
        for level, kind, payload in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                self.received += struct.unpack("%di" % (len(payload) // 4), payload[: len(payload) // 4 * 4])
        try:
            self.parse(connection, data)
        except (struct.error, ValueError) as error:
            self.close()
            raise EOFError("incomplete request") from error

    def parse(self, connection, data):
        (size,) = struct.unpack("I", data)
        body = bytearray()
        while len(body) < size:
            more = connection.recv(size - len(body))
            if not more:
                raise ValueError
            body += more
        self.at, self.body = 0, bytes(body)
        self.kind, self.target, self.leader, self.parent = self.numbers(4)
        self.directory = self.text()
        self.words = [self.text() for _ in range(self.numbers(1)[0])]
        entries = [self.text() for _ in range(self.numbers(1)[0])]
        self.environment = dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)
        self.descriptors = self.numbers(self.numbers(1)[0])
        if len(self.descriptors) != len(self.received) or self.target >= len(self.words):
            raise ValueError

    def numbers(self, count):
        found = struct.unpack_from("%dI" % count, self.body, self.at)
        self.at += 4 * count
        return found

    def text(self):
        (size,) = self.numbers(1)
        self.at += size
        return self.body[self.at - size : self.at]

    def close(self):
        for fd in self.received:
            os.close(fd)
        self.received = []

    def program(self):
        """The script's path, or the module's name."""
        name = os.fsdecode(self.words[self.target])
        return os.path.join(os.fsdecode(self.directory), name) if self.kind == SCRIPT else name

    def is_launcher(self):
        return os.path.basename(os.fsdecode(self.words[self.target])) in LAUNCHERS

    def first_path(self):
        """What the interpreter puts in front of sys.path; None: nothing (-P, -I)."""
        if getattr(sys.flags, "safe_path", False) or sys.flags.isolated:
            return None
        if self.kind == CODE:
            return ""
        return os.fsdecode(self.directory) if self.kind == MODULE else os.path.dirname(os.path.realpath(self.program()))


# In the child


def install_descriptors(request, kept):
    """Installs the program's file descriptors under their own numbers and closes all others except `kept`, which is moved."""
    high = max(request.descriptors) + 1
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, high) for fd in [kept] + request.received]
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in moved:
            try:
                os.close(int(name))
            except OSError:
                pass  # the listing's own
    for fd, number in zip(moved[1:], request.descriptors):
        os.dup2(fd, number)
        os.close(fd)
    return moved[0]


def install_streams():
    """Keeps the objects sys.stdin, stdout and stderr, because modules refer to them, with the new descriptors."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            terminal = os.isatty(fd)
            os.fstat(fd)
        except OSError:
            setattr(sys, name, None)
            setattr(sys, "__%s__" % name, None)
            continue
        if fd == 1:
            sys.stdout.reconfigure(line_buffering=terminal)


def show_words(words):
    """Makes /proc/self/cmdline, and therefore `ps` and the recording, show the program's arguments."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    begin, end = int(fields[45]), int(fields[46])
    if 0 < begin < end:
        room = end - begin
        ctypes.memmove(begin, (b"\0".join(words) + b"\0")[:room].ljust(room, b"\0"), room)


def environment_of_c():
    entries = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    found, at = {}, 0
    while entries[at] is not None:
        name, equals, value = entries[at].partition(b"=")
        if equals:
            found[name] = value
        at += 1
    return found


class Guarded(dict):
    """The storage of os.environ in a program. If the program sets a variable that an already imported module has read, the
    value comes too late. Until it uses the device, such a program is started again with exec."""

    def __init__(self, data, template, request):
        super().__init__(data)
        self.template, self.request = template, request

    def check(self, key, value):
        name = os.fsdecode(key)
        if (dict.get(self, key) == value or is_place(name) or not self.template.environment.decides(name)
                or self.template.device.used()):
            return
        with open(self.template.plain_file, "a") as file:
            file.write(self.request.program() + " " + name + "\n")
        for stream in (sys.stdout, sys.stderr):
            stream and stream.flush()
        self.request.environment.pop(b"MAYA_START_DIR", None)
        os.execve(self.request.words[0], self.request.words, self.request.environment)

    def __setitem__(self, key, value):
        self.check(key, value)
        dict.__setitem__(self, key, value)

    def __delitem__(self, key):
        self.check(key, None)
        dict.__delitem__(self, key)


def install(request, template, connection):
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: the template reports the end of this process
    os.chdir(request.directory)
    os.setsid() if request.leader else os.setpgid(0, 0)
    report = install_descriptors(request, connection)
    install_streams()
    show_words(request.words)
    name_process(os.path.basename(request.words[0]))
    for name in dict.keys(template.environment):
        os.unsetenv(name)
    for name, value in template.environment.applied_to(request.environment).items():
        os.putenv(name, value)
    template.device.start_again()  # determines the rank of this process
    environment = environment_of_c()
    os.environ._data = environment if request.is_launcher() else Guarded(environment, template, request)
    sys.orig_argv = [os.fsdecode(word) for word in request.words]
    words = sys.orig_argv[request.target :]
    sys.argv = words if request.kind == SCRIPT else ["-m" if request.kind == MODULE else "-c"] + words[1:]
    if request.first_path() is not None:
        sys.path.insert(0, request.first_path())
    # Seeds random generators from the system's entropy, as their import would. Python's own generator does this after fork.
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    sys.modules["torch"].default_generator.seed()
    if "multiprocessing.process" in sys.modules:
        sys.modules["multiprocessing.process"]._current_process.authkey = os.urandom(32)
    atexit.register(leave_names, set(sys.modules), template.learned_file)
    os.write(report, struct.pack("ii", STARTED, os.getpid()))
    os.close(report)
    return words[0]


def run(kind, target):
    """Runs a script, a module or code like the interpreter."""
    from importlib.machinery import BuiltinImporter, SourceFileLoader

    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=sys.modules["builtins"], __annotations__={})
    sys.modules["__main__"] = main
    if kind == MODULE:
        import runpy

        main.__loader__ = BuiltinImporter
        runpy._run_module_as_main(target)
    elif kind == CODE:
        main.__loader__ = BuiltinImporter
        exec(compile(target + "\n", "<string>", "exec"), main.__dict__)
    else:
        main.__file__, main.__cached__, main.__loader__ = target, None, SourceFileLoader("__main__", target)
        with open(target, "rb") as file:
            code = compile(file.read(), target, "exec", dont_inherit=True)
        exec(code, main.__dict__)


def become(request, template, connection):
    """Runs the program to its end, and ends the process like the interpreter."""
    known = set(sys.modules)
    try:
        target = install(request, template, connection)
    except BaseException as error:  # maya-start then starts it with exec
        os.write(2, ("cannot fork the program: %r\n" % (error,)).encode())
        os._exit(1)
    code = 0
    try:
        run(request.kind, target)
    except SystemExit as asked:
        code = asked.code if isinstance(asked.code, int) else 0 if asked.code is None else 1
        if code == 1 and asked.code != 1 and sys.stderr:
            print(asked.code, file=sys.stderr)
    except BaseException as error:
        code = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        del error, trace, sys.last_value, sys.last_traceback
    end(code, known)


def end(code, known):
    """What the interpreter does at its end, for the program's own objects. Those of the packages, of which most were made
    in the template, are left to the kernel: taking them down takes a second."""
    import threading

    threading._shutdown()
    atexit._run_exitfuncs()
    own = [module for name, module in list(sys.modules.items()) if name == "__main__" or name not in known and is_own(module)]
    for module in own:
        names = module.__dict__
        for name in sorted(names, key=lambda name: not name.startswith("_")):
            if name != "__builtins__":
                names[name] = None
    for stream in (sys.stdout, sys.stderr):
        try:
            stream and stream.flush()
        except (OSError, ValueError):
            code = code or 120
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    ctypes.CDLL(None).fflush(None)
    os._exit(code & 0xFF)


def is_own(module):
    """Whether a module belongs to the program and not to a package or to Python."""
    path = getattr(module, "__file__", None) or ""
    return path != "" and not in_packages(module) and not path.startswith((sys.prefix, sys.base_prefix))


def in_packages(module):
    return any(part in (getattr(module, "__file__", None) or "") for part in ("/site-packages/", "/dist-packages/"))


def leave_names(known, path):
    """The modules that the program imported from packages, in order, for later programs."""
    new = [name for name, module in list(sys.modules.items()) if name not in known and in_packages(module)]
    if new:
        with open(path, "a") as file:
            file.write("\n".join(new) + "\n")


# In the template


class Server:
    def __init__(self, template, listener, owner):
        self.template, self.listener, self.owner = template, listener, owner
        self.children = {}  # process → connection
        self.poll = select.poll()
        self.woken, end = os.pipe()
        for fd in (self.woken, end):
            os.set_blocking(fd, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(end, warn_on_full_buffer=False)
        for fd in (self.woken, listener.fileno()):
            self.poll.register(fd, select.POLLIN)

    def serve(self):
        """In a child, returns the program that it becomes. In the template, returns None when the owner of the directory
        and all programs have ended."""
        while True:
            events = dict(self.poll.poll(1000))
            if self.woken in events:
                os.read(self.woken, 4096)
            self.end_forsaken(events)
            self.reap()
            # An owner that ended well removes the directory; one that was killed leaves it, and its number may be given again.
            needed = os.path.exists("/proc/%d" % self.owner) and os.path.exists(self.listener.getsockname())
            if not self.children and not needed:
                return None
            if self.listener.fileno() in events:
                asked = self.answer()
                if asked:
                    return asked

    def end_forsaken(self, events):
        """maya-start was killed: kills its program and all its descendants."""
        for process, connection in self.children.items():
            if connection.fileno() in events:
                self.poll.unregister(connection)
                for target in (-process, process):
                    try:
                        os.kill(target, signal.SIGKILL)
                    except OSError:
                        pass

    def reap(self):
        while self.children or self.template.trying:
            process, status, usage = os.wait4(-1, os.WNOHANG)
            if process == 0:
                return
            print("process", process, "ended with status", status, "after %.2f s" % (usage.ru_utime + usage.ru_stime), flush=True)
            again = False
            if process == self.template.trying:
                again = self.template.take_results()
            connection = self.children.pop(process, None)
            if connection:
                try:
                    self.poll.unregister(connection)
                except KeyError:
                    pass
                try:
                    connection.sendall(struct.pack("i", status))
                except OSError:
                    pass
                connection.close()
            if connection or again:
                self.template.try_learned()

    def answer(self):
        connection, _ = self.listener.accept()
        request = None
        try:
            request = Request(connection)
            verdict = self.template.verdict(request)
            if verdict != STARTED:
                connection.sendall(struct.pack("ii", verdict, 0))
            else:
                sys.stdout.flush()
                process = os.fork()
                if process == 0:
                    return request, connection.detach()
                self.children[process] = connection
                self.poll.register(connection, select.POLLHUP)
        except (OSError, EOFError) as error:
            print("request failed:", repr(error), flush=True)
            verdict = REFUSED
        if request:
            request.close()
        if verdict != STARTED:
            connection.close()
        return None


def remove_abandoned(directory, owner):
    """Removes the directory of an owner that was killed; one that ended well has done so itself."""
    if os.path.exists("/proc/%d" % owner):
        return
    try:
        for name in os.listdir(directory):
            os.unlink(os.path.join(directory, name))
        os.rmdir(directory)
    except OSError:
        pass  # another template is about to do it


def begin():
    path, ready, modules_file = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if sys.path[0] == os.path.dirname(os.path.abspath(__file__)):
        del sys.path[0]  # programs set their own
    os.set_inheritable(ready, False)
    with open(os.path.join(os.path.dirname(path), "owner")) as file:
        owner = int(file.read())
    template = Template(path[: -len(".sock")], modules_file)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(256)
    os.write(ready, b"y")
    os.close(ready)
    template.device.leave_run()
    name_process(b"maya-template")
    asked = Server(template, listener, owner).serve()
    if asked is None:
        remove_abandoned(os.path.dirname(path), owner)
        os._exit(0)
    return asked[0], template, asked[1]


if __name__ == "__main__":
    become(*begin())
