"""NVIDIA's redistributable archives: where they are, and which make up a toolkit."""

from __future__ import annotations

import hashlib
import json

#: A mirror: `DSDOCTOR_CUDA_ARCHIVES`.
BASE_URL = "https://developer.download.nvidia.com/compute/cuda/redist"
#: What DeepSpeed's ops need: compiler, runtime, and every header that torch's own headers include.
COMPONENTS = (
    "cuda_nvcc",
    "cuda_crt",
    "libnvvm",
    "cuda_cudart",
    "cuda_cccl",
    "libcublas",
    "libcusparse",
    "libcusolver",
    "libcurand",
    "libnvjitlink",
)
#: Last update of each CUDA release that has a manifest (NVIDIA's CUDA toolkit archive, 2026-11-21)
#: whose hash is known; for 12.2 that is the first.
LAST_UPDATE = {
    "11.4": "11.4.4",
    "11.5": "11.5.2",
    "11.6": "11.6.2",
    "11.7": "11.7.1",
    "11.8": "11.8.0",
    "12.0": "12.0.1",
    "12.1": "12.1.1",
    "12.2": "12.2.0",
    "12.3": "12.3.2",
    "12.4": "12.4.1",
    "12.5": "12.5.1",
    "12.6": "12.6.3",
    "12.8": "12.8.1",
    "12.9": "12.9.1",
    "13.0": "13.0.2",
}


#: SHA-256 of NVIDIA's manifests, which in turn contain the SHA-256 of each archive. Source:
#: `CUDA_REDIST_JSON_DICT` of google-ml-infra/rules_ml_toolchain, gpu/cuda/cuda_redist_versions.bzl,
#: commit b117455 of 2026-06-29, with which XLA, JAX and TensorFlow are built; read 2026-11-22.
MANIFEST_SHA256 = {
    "11.8.0": "941a950a4ab3b95311c50df7b3c8bca973e0cdda76fc2f4b456d2d5e4dac0281",
    "12.1.1": "bafea3cb83a4cf5c764eeedcaac0040d0d3c5db3f9a74550da0e7b6ac24d378c",
    "12.2.0": "d883762c6339c8ebb3ffb072facc8f7265cd257d2db16a475fff9a9306ecea89",
    "12.3.1": "b3cc4181d711cf9b6e3718f323b23813c24f9478119911d7b4bceec9b437dbc3",
    "12.3.2": "1b6eacf335dd49803633fed53ef261d62c193e5a56eee5019e7d2f634e39e7ef",
    "12.4.0": "a4f496b8d5299939b34c9ef88dc4274821f8c9451b2d7c9bcee53166932da067",
    "12.4.1": "9cd815f3b71c2e3686ef2219b7794b81044f9dcefaa8e21dacfcb5bc4d931892",
    "12.5.0": "166664b520bfe51f27abcc8c7a934f4cb6ea287f8c399b5f8255f6f4d214569a",
    "12.5.1": "7ab9c76014ae4907fa1b51738af599607a5fd8ca3a5c4bb4c3b31338cc642a93",
    "12.6.0": "87740b01676b3d18982982ab96ec7fa1a626d03a96df070a6b0f258d01ff5fab",
    "12.6.1": "22ddfeb81a6f9cee4a708a2e3b4db1c36c7db0a1daa1f33f9c7f2f12a1e790de",
    "12.6.2": "8056da1f5acca8e613da1349d9b8782b774ad0254e3eddcc95734ded4d33f2df",
    "12.6.3": "9c598598457a6463eb92889080c16b2b9dc04150e501b8bfc1536d403ba70aaf",
    "12.8.0": "daa0d766b36feaa933592162c27be5fb63b68fc547ca6886c160a35d96ee8891",
    "12.8.1": "249e28a83008d711d5f72880541c8be6253f6d61608461de4fcb715554a6cf17",
    "12.8.2": "bbf0798e9aabdd6887b429f0d1ff27412bca2ead081f898a18f0381cd8cb7359",
    "12.9.0": "4e4e17a12adcf8cac40b990e1618406cd7ad52da1817819166af28a9dfe21d4a",
    "12.9.1": "8335301010b0023ee1ff61eb11e2600ca62002d76780de4089011ad77e0c7630",
    "12.9.2": "236b051e6c7915a31ed9da369ea74ddb5b0fbf77eb1dffc10640e7ce6ed10257",
    "13.0.0": "fe6a86b54450d03ae709123a52717870c49046d65d45303ce585c7aa8a83a217",
    "13.0.1": "9c494bc13b34e8fbcad083a6486d185b0906068b821722502edf9d0e3bd14096",
    "13.0.2": "fce66717a81c510ffeb89ecc3e79849ab34af3b80139f750876d9033e31d71c2",
    "13.0.3": "d73344990be5d826cf6eedc5495c858eb5923e5ffe7ede7fd6ebdd7be928ffc9",
    "13.1.0": "55304d9d831bb095d9594aab276f96d2f0e30919f4cc1b3f6ca78cdb5f643e11",
    "13.1.1": "97cf605ccc4751825b1865f4af571c9b50dd29ffd13e9a38b296a9ecb1f0d422",
    "13.1.2": "33001778b29e0ad294d97eed123f2aec99a15403e8505eef43a86cdcdd6ef583",
    "13.2.0": "8ce26ee1cb7ff13286f20dd2c6efbe268776bb13d71108c69cd04453b9d85d2b",
    "13.2.1": "a4cd46534f04a2be56e57a0300012b584276e8783333663ee56c9e8457a02783",
    "13.3.0": "507eddaab1360336bc0fe17b77552e0b7dfe1e74da888671c3a2f5fad7775db1",
}
#: SHA-256 of the keys and values (`content_sha256`) of manifests that are public only with another
#: indentation. Source: bazel-contrib/rules_cuda, cuda/redistrib, commit ff35d01 of 2023-03-20; its
#: copy of 11.8.0 is, apart from the indentation, the manifest that is pinned above.
#: Read 2026-11-22.
CONTENT_SHA256 = {
    "11.4.4": "7195c2a0c645a542c1f3158d2badd67ceff2d06ccc9893e79dc5e19418498d61",
    "11.5.2": "6b4b5030fa97b09228784f65cad1d9bc4c5c058b3973af72a28db0412c53fb4a",
    "11.6.2": "101028ac41156165fd4f3d700016527e24212698f4fc07fcae83092ea5422d67",
    "11.7.1": "949cbbf61ffc4b20febd323d000cc064cab6d494cf5aae14980d2af870f6eab7",
    "12.0.1": "2f4417f4c4ece8f723112543b7f6359c91d760f413560aec99a3b790f2c52a3e",
}


def content_sha256(manifest: bytes) -> str:
    """The SHA-256 of keys and values, whatever their order and indentation; "" if it is not JSON.

    >>> content_sha256(b'{"b": 1, "a": 2}') == content_sha256(b'{ "a": 2, "b": 1}')
    True
    """
    try:
        text = json.dumps(json.loads(manifest), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return ""
    return hashlib.sha256(text.encode()).hexdigest()


def is_pinned(manifest: bytes, release: str) -> bool:
    """Whether it is the manifest of this release in the tables."""
    if release in MANIFEST_SHA256:
        return hashlib.sha256(manifest).hexdigest() == MANIFEST_SHA256[release]
    return release in CONTENT_SHA256 and content_sha256(manifest) == CONTENT_SHA256[release]


def last_release(cuda: str) -> str:
    """The last update of a CUDA release; for an unknown release, its first.

    >>> last_release("12.4"), last_release("13.9")
    ('12.4.1', '13.9.0')
    """
    return LAST_UPDATE.get(cuda, f"{cuda}.0")


def platform_of(machine: str) -> str:
    """The name of a platform in a manifest.

    >>> platform_of("x86_64"), platform_of("aarch64")
    ('linux-x86_64', 'linux-sbsa')
    """
    return {"aarch64": "linux-sbsa", "arm64": "linux-sbsa"}.get(machine, f"linux-{machine}")
