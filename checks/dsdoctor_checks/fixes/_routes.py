"""The ways to a toolkit, simplest first. Each returns steps and a CUDA_HOME, or why not."""

from __future__ import annotations

import msgspec

from dsdoctor.api import (
    Fetch,
    FixRequest,
    Link,
    LinkNames,
    LinkTree,
    Missing,
    PackageManagers,
    Patient,
    Reach,
    Run,
    Step,
    Toolkit,
    ToolkitArchives,
    ToolkitWheels,
    reach_of,
)
from dsdoctor_checks._util import GIB, pair

#: Space that a toolkit needs with its downloads (du of 12.4 and 13.0).
TOOLKIT_BYTES = 8 * GIB
#: The same for the wheels, by what is among them.
WHEEL_BYTES = {"nvidia-cublas": GIB, "nvidia-cusparse": GIB // 2, "nvidia-cusolver": GIB // 2}
IN_PLACE = "--in-place"
#: From this release on conda-forge has the whole toolkit, pinned by `cuda-version`.
FORGE_SINCE = (12, 0)


class Route(msgspec.Struct, frozen=True):
    """A way to a toolkit.

    Attributes:
        steps: in order.
        home: the directory for CUDA_HOME.
        reason: why this way was chosen.
        creates: directories that undo removes.
        variables: further variables that a build needs.
        undo: how it is undone, if not by removing a directory.
        otherwise: option of `fix` to try if the proof fails.
    """

    steps: tuple[Step, ...]
    home: str
    reason: str
    creates: tuple[str, ...] = ()
    variables: dict[str, str] = msgspec.field(default_factory=dict)
    undo: str = ""
    otherwise: str = ""


def on_disk(found: tuple[Toolkit, ...], want: str) -> Route | None:
    """(1) A complete toolkit of the right version that is already installed."""
    fitting = [
        toolkit for toolkit in found if toolkit.is_complete and pair(toolkit.version) == pair(want)
    ]
    if not fitting:
        return None
    # one from an earlier fix first: it was proven with this torch
    best = min(fitting, key=lambda toolkit: not toolkit.source.startswith("dsdoctor"))
    where = "an earlier fix installed it" if best.source.startswith("dsdoctor") else best.source
    return Route(
        steps=(),
        home=best.root,
        reason=f"`{best.root}` is a complete CUDA {best.version} toolkit ({where}) and only has to be selected",
        variables=_conda_variables(best.root) if best.source.endswith("conda") else {},
    )


def _conda_variables(root: str) -> dict[str, str]:
    """Conda puts the headers in targets/, where the host compiler does not search."""
    return {"CPATH": f"{root}/targets/x86_64-linux/include"}


def conda(
    managers: PackageManagers, patient: Patient, request: FixRequest, want: str, prefix: str
) -> Route | str:
    """(2) conda, mamba, micromamba or pixi, into a separate prefix."""
    if managers.conda is None:
        return "conda, mamba, micromamba and pixi are not installed"
    kind = managers.conda_kind or "conda"
    major_minor = pair(want) or (0, 0)
    forge = (managers.conda_forge or kind in ("micromamba", "pixi")) and major_minor >= FORGE_SINCE
    if forge:
        channels = ["conda-forge"]
        # `cuda-version` is what pins everything else there
        specs = [f"cuda-toolkit={want}", f"cuda-version={want}"]
        why = f"conda-forge, pinned by `cuda-version={want}`"
    else:
        channels = [f"nvidia/label/cuda-{want}.0"]
        # the label does not pin what its packages require
        parts = ("cuda-toolkit", "cuda-nvcc", "cuda-cudart-dev", "cuda-libraries-dev")
        specs = [f"{part}={want}" for part in parts]
        why = f"the channel `{channels[0]}`, with the versions of its parts pinned"
    if kind == "pixi":
        return _pixi(managers, want, prefix)
    in_place = request.in_place
    if in_place and patient.kind != "conda":
        return "`--in-place` installs into a conda environment, but this is not one"
    home = patient.prefix if in_place else prefix
    flags = ["--yes", "--prefix", home, "--override-channels"]
    flags += [word for channel in channels for word in ("--channel", channel)]
    # micromamba and conda both take it from 4.9 / 1.0 on
    flags.append("--strict-channel-priority")
    action = "install" if in_place else "create"
    return Route(
        steps=(
            Run(
                argv=(str(managers.conda), action, *flags, *specs),
                why=f"the toolkit of torch's CUDA from {why}",
                inventory="conda" if in_place else "",
                creates="" if in_place else home,
                needs_bytes=TOOLKIT_BYTES,
            ),
        ),
        home=home,
        reason=f"`{managers.conda}` can install it "
        + ("into the environment itself (`--in-place`)" if in_place else "into a separate prefix"),
        creates=() if in_place else (home,),
        variables=_conda_variables(home),
        undo="conda restores the previous packages" if in_place else "",
        otherwise="" if in_place or patient.kind != "conda" else IN_PLACE,
    )


def _pixi(managers: PackageManagers, want: str, prefix: str) -> Route:
    home = f"{prefix}/.pixi/envs/default"
    manifest = f"{prefix}/pixi.toml"
    pixi = str(managers.conda)
    specs = (f"cuda-toolkit={want}", f"cuda-version={want}")
    return Route(
        steps=(
            Run(
                argv=(pixi, "init", prefix, "--channel", "conda-forge"),
                why="a project that contains only the toolkit",
                creates=prefix,
                needs_bytes=TOOLKIT_BYTES,
            ),
            Run(
                argv=(pixi, "add", "--manifest-path", manifest, *specs),
                why=f"the toolkit of torch's CUDA from conda-forge, pinned by `cuda-version={want}`",
            ),
        ),
        home=home,
        reason=f"`{pixi}` can install it into a separate prefix",
        creates=(prefix,),
        variables=_conda_variables(home),
    )


def pip(
    wheels: ToolkitWheels | Missing, patient: Patient, request: FixRequest, want: str, prefix: str
) -> Route | str:
    """(3) CUDA 13: wheels that torch does not install, outside the environment, joined by links."""
    major = (pair(want) or (0, 0))[0]
    if isinstance(wheels, Missing):
        return f"pip: {wheels.detail}"
    specs = tuple(wheel.spec for wheel in wheels.lacking)
    python = patient.executable
    size = GIB + sum(WHEEL_BYTES.get(wheel.name, 0) for wheel in wheels.lacking)
    if request.in_place:
        if patient.kind == "system":
            return (
                f"pip: `{python}` is not in a virtual environment, so nothing is installed into it"
            )
        if wheels.present is None and not specs:
            return "pip: the wheels of the toolkit are installed, but their directory is missing"
        home = wheels.present or f"{_site(patient)}/nvidia/cu{major}"
        place: tuple[Step, ...] = (
            Run(
                argv=(python, "-m", "pip", "install", "--no-input", "--no-deps", *specs),
                env={"PIP_USER": "0"},
                why="the parts that torch does not install, into the environment itself (`--in-place`)",
                inventory="pip",
                needs_bytes=size,
            ),
        )
        links: tuple[Step, ...] = (
            LinkNames(link=f"{home}/lib", why="names that the linker searches for"),
            Link(link=f"{home}/lib64", target="lib", why="DeepSpeed's builds search it"),
        )
        return Route(
            steps=(*(place if specs else ()), *links),
            home=home,
            reason=f"pip can install the CUDA {wheels.release} toolkit as wheels (`--in-place`)",
            undo="pip restores the previous packages, and the links are removed",
        )
    home = f"{prefix}/nvidia/cu{major}"
    steps: list[Step] = []
    if specs:
        steps.append(
            Run(
                argv=(python, "-m", "pip", "install", "--no-input", "--target", prefix, "--no-deps",
                      *specs),
                env={"PIP_USER": "0"},
                why=f"the parts of `cuda-toolkit=={wheels.release}` that torch does not install; no "
                "installed package changes",
                creates=prefix,
                needs_bytes=size,
            )
        )  # fmt: skip
    if wheels.present is not None:
        steps += [
            LinkTree(
                link=f"{home}/{part}",
                source=f"{wheels.present}/{part}",
                why=f"the {what} in torch's own wheels",
            )
            for part, what in (("include", "headers"), ("lib", "libraries"))
        ]
    steps += [
        LinkNames(
            link=f"{home}/lib",
            why="names that the linker searches for (`libcudart.so`); the wheels do not contain them",
        ),
        Link(link=f"{home}/lib64", target="lib", why="DeepSpeed's builds search it"),
    ]
    return Route(
        steps=tuple(steps),
        home=home,
        reason=f"pip can install the CUDA {wheels.release} toolkit as wheels, and torch includes the rest",
        creates=(prefix,),
        otherwise="" if patient.kind == "system" else IN_PLACE,
    )


def _site(patient: Patient) -> str:
    return next(
        (folder for folder in patient.sys_path if folder.endswith("-packages")), patient.prefix
    )


def archives(found: ToolkitArchives | Missing, prefix: str) -> Route | str:
    """(3b) NVIDIA's redistributable archives with checksums, into a separate prefix."""
    if isinstance(found, Missing):
        return f"archives: {found.detail}"
    if found.lacking:
        return f"archives: `{found.manifest}` has no {', '.join(found.lacking)} for this platform"
    steps: list[Step] = [
        Fetch(
            fetch=archive.url,
            sha256=archive.sha256,
            size=archive.size,
            into=prefix,
            why=f"`{archive.component}` of CUDA {found.release}",
        )
        for archive in found.archives
    ]
    steps.append(Link(link=f"{prefix}/lib64", target="lib", why="DeepSpeed's builds search it"))
    return Route(
        steps=tuple(steps),
        home=prefix,
        reason=f"PyPI has no nvcc for CUDA {found.release}, but NVIDIA's archives do (its EULA applies), "
        f"with checksums from `{found.manifest}`",
        creates=(prefix,),
    )


def system(managers: PackageManagers, want: str, root: bool) -> Route | str:
    """(4) apt or dnf with NVIDIA's repository; changes the system."""
    package = f"cuda-toolkit-{want.replace('.', '-')}"
    if managers.system is None:
        return "apt and dnf are not installed"
    if package not in managers.candidates:
        return (
            f"{managers.system} does not offer `{package}`: NVIDIA's repository is not configured "
            "(https://developer.nvidia.com/cuda-downloads)"
        )
    if not root and managers.sudo is None:
        return f"{managers.system} offers `{package}`, but needs root, and there is no sudo"
    return Route(
        steps=(system_install(managers, (package,), root, "the toolkit without a driver"),),
        home=f"/usr/local/cuda-{want}",
        reason=f"{managers.system} offers `{package}`",
        undo=f"{managers.system} removes what it installed",
    )


def first(attempts: tuple[Route | str, ...], request: FixRequest) -> Route | str:
    """The first way that exists and that the reach allows, or why there is none."""
    no: list[str] = []
    for attempt in attempts:
        if isinstance(attempt, str):
            no += [attempt] if attempt else []
            continue
        reach = reach_of(attempt.steps)
        if request.allows(reach):
            return attempt
        no.append(f"{attempt.reason}, which needs `--reach {reach.value}`")
    return "; ".join(no)


def system_install(
    managers: PackageManagers, packages: tuple[str, ...], root: bool, why: str
) -> Run:
    """A step that installs system packages."""
    sudo = () if root else ("sudo", "-n")
    install = (
        ("apt-get", "install", "--yes", "--no-install-recommends")
        if managers.system == "apt"
        else ("dnf", "install", "--assumeyes", "--setopt=install_weak_deps=False")
    )
    env = {"DEBIAN_FRONTEND": "noninteractive"} if managers.system == "apt" else {}
    return Run(
        argv=(*sudo, *install, *packages),
        env=env,
        why=why,
        reach=Reach.SYSTEM,
        inventory=managers.system or "",
    )
