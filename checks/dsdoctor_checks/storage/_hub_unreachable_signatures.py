"""Messages of a hub that cannot be reached, for `hub-unreachable`.

Over 400 lines because it is a table: one signature for each message.
"""

from __future__ import annotations

from dsdoctor.api import Level, Signature

#: What an address of the hub without a scheme ends with. Nothing else sets the hub's address.
_NO_SCHEME = "the address of the hub in `HF_ENDPOINT` has no `https://`"
_WITH_SCHEME = "begin `HF_ENDPOINT` with `https://`, such as `https://huggingface.co`, or unset it"
_OF_HUB = ("/huggingface_hub/", "\\huggingface_hub\\")

SIGNATURES = (
    Signature(
        pattern="UnsupportedProtocol: Request URL is missing an 'http://' or 'https://' protocol",
        source="httpx 0.13-0.28, httpcore 0.10-1.0, httpx2 and httpcore2 2.16 (UnsupportedProtocol); huggingface_hub 1.0-2.4 constants.py (`ENDPOINT`)",
        examples=(
            "httpx.UnsupportedProtocol: Request URL is missing an 'http://' or 'https://' protocol.",
            "[rank1]: httpcore2.UnsupportedProtocol: Request URL is missing an 'http://' or 'https://' protocol.",
        ),
        level=Level.STRONG,
        requires=_OF_HUB,
        message=_NO_SCHEME,
        hint=_WITH_SCHEME,
    ),
    Signature(
        pattern=r"MissingSchema: Invalid URL '[^']{1,300}': No scheme supplied",
        source="requests 2.0-2.32 models.py; huggingface_hub 0.5-0.36 constants.py (`ENDPOINT`)",
        examples=(
            "requests.exceptions.MissingSchema: Invalid URL 'hub.example/api/models/a/b': No scheme supplied. Perhaps you meant https://hub.example/api/models/a/b?",
        ),
        not_examples=("MissingSchema: Invalid URL '': No scheme supplied",),
        level=Level.STRONG,
        requires=_OF_HUB,
        message=_NO_SCHEME,
        hint=_WITH_SCHEME,
    ),
    Signature(
        pattern="[Ww]e couldn't connect to '",
        source="transformers 4.28.1-5.23.0 utils/hub.py",
        examples=("OSError: We couldn't connect to 'https://huggingface.co' to load this file",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="outgoing traffic has been disabled",
        source="huggingface_hub 2.4.0 _snapshot_download.py",
        examples=(
            "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the requested files in the disk cache and outgoing traffic has been disabled. To enable hf.co look-ups and downloads online, set 'local_files_only' to False.",
        ),
        level=Level.STRONG,
        hint="run `unset HF_HUB_OFFLINE TRANSFORMERS_OFFLINE`, or download the files in advance with `hf download MODEL`",
    ),
    Signature(
        pattern="LocalEntryNotFoundError: ",
        source="huggingface_hub 0.14-2.4 errors.py, file_download.py",
        examples=(
            "huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the file on the Hub and we cannot find the requested files in the local cache. Please check your connection and try again or make sure your Internet connection is on.",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="Couldn't reach .{1,80}(?:on the Hub|Connection|http)",
        source="datasets 3.6.0 load.py",
        examples=(
            "ConnectionError: Couldn't reach 'tatsu-lab/alpaca' on the Hub (ConnectTimeout)",
            "Couldn't reach xConnection",
            "Couldn't reach xhttp",
        ),
        not_examples=("ConnectionError: Couldn't reach 'tatsu-lab/alpaca' on the",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="cannot find the requested files in the",
        source="huggingface_hub 2.4.0 file_download.py",
        examples=(
            "huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the file on the Hub and we cannot find the requested files in the local cache. Please check your connection and try again or make sure your Internet connection is on.",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"(?:huggingface\.co|hf\.co|modelscope|hf-mirror)\S{0,20}.{0,80}Max retries(?!.{0,1500} thrown while requesting )",
        source="urllib3 1.0-2.8 exceptions.py MaxRetryError",
        examples=(
            "ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded",
            "hf.cox1 ... Max retries",
            "modelscopex1 ... Max retries",
            "hf-mirrorx1 ... Max retries",
        ),
        # huggingface_hub warns before each of its own retries, and raises when it gives up
        not_examples=(
            "port=443): Max retries exceeded",
            "'(MaxRetryError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /x\"), '(Request ID: 1)')' thrown while requesting HEAD https://huggingface.co/x",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="OfflineModeIsEnabled: ",
        source="huggingface_hub 0.14-2.4 errors.py; datasets 1.18-4.4 utils/file_utils.py",
        examples=(
            "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co/api/models/x: offline mode is enabled. To disable it, please unset the `HF_HUB_OFFLINE` environment variable.",
        ),
        level=Level.STRONG,
        message="The hub's offline mode is on, and the files are not in the cache",
        hint="download them in advance with `hf download MODEL`, or unset `HF_HUB_OFFLINE`",
    ),
    Signature(
        pattern="Distant resource does not seem",
        source="huggingface_hub 0.17.3-0.24.7 file_download.py",
        examples=("Distant resource does not seem",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"(?:Failed to resolve|Read timed out|Connection to|HTTPSConnectionPool\(host=)\s?'?(?:cdn-lfs|huggingface\.co|hf\.co|hf-mirror\.com|raw\.githubusercontent\.com)\S{0,80} ?.{0,60}(?:timed out|resolve|Max retries|Read|SSL|refused|Proxy)(?!.{0,1500} thrown while requesting )",
        source="urllib3 1.0-2.8 connection.py, connectionpool.py",
        examples=(
            "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='huggingface.co', port=443): Read timed out. (read timeout=10)",
            "Failed to resolvecdn-lfsx1 ... timed out",
            "Read timed outcdn-lfsx1 ... timed out",
            "Connection tocdn-lfsx1 ... timed out",
            "Failed to resolvehf.cox1 ... timed out",
            "Failed to resolvehf-mirror.comx1 ... timed out",
            "Failed to resolveraw.githubusercontent.comx1 ... timed out",
            "Failed to resolvecdn-lfsx1 ... resolve",
            "Failed to resolvecdn-lfsx1 ... Max retries",
            "Failed to resolvecdn-lfsx1 ... SSL",
            "Failed to resolvecdn-lfsx1 ... refused",
            "Failed to resolvecdn-lfsx1 ... Proxy",
        ),
        not_examples=(
            "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='huggingface.co', port=443):",
            "'(MaxRetryError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /x\"), '(Request ID: 1)')' thrown while requesting HEAD https://huggingface.co/x",
        ),
    ),
    Signature(
        pattern="Failed to resolve 'huggingface",
        source="urllib3 2.0-2.8 exceptions.py NameResolutionError",
        examples=(
            "urllib3.exceptions.NameResolutionError: Failed to resolve 'huggingface.co' ([Errno -2] Name or service not known)",
        ),
    ),
    Signature(
        pattern=r"Error: .{0,60}huggingface\.co.{0,80}(?:timed out|unreachable|refused)",
        source=(
            "aiohttp 3.0-3.14 client_exceptions.py; httpx 0.18-0.28; python 3.3-3.14 "
            "Objects/exceptions.c"
        ),
        examples=(
            "RuntimeError: huggingface.co ... timed out",
            "aiohttp.client_exceptions.ClientConnectorError: Cannot connect to host cdn-lfs.huggingface.co:443 ssl:default [Network is unreachable]",
            "RuntimeError: huggingface.co ... refused",
        ),
        not_examples=(
            "OSError: org/x is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'",
        ),
    ),
    Signature(
        pattern=r"HfHubHTTPError: 5\d\d|\b50[0-4] Server Error: .{0,80}huggingface\.co",
        source=("huggingface_hub 0.14-2.4 errors.py; requests 2 models.py raise_for_status"),
        examples=(
            "huggingface_hub.errors.HfHubHTTPError: 504 Server Error: Gateway Time-out for url: https://huggingface.co/api/models/x",
        ),
        not_examples=(" Server Error:  ",),
        message="The hub answered with a server error",
        hint="try again later; download in advance (`hf download MODEL`) and set "
        "`HF_HUB_OFFLINE=1` to be independent of it",
    ),
    Signature(
        pattern=r"URLError: <urlopen error (?:\[Errno (?:-?[235]|101|104|110|111|113)\]|\[WinError 100|\[SSL|timed out|_ssl|Tunnel)|(?:httpx|httpcore)\.(?:Connect|Read|Proxy)\w{1,20}: (?!All connection attempts failed)",
        source=(
            "python 3.3-3.14 Lib/urllib/error.py, httpx 0.18-0.28 "
            "_exceptions.py, as Python prints an exception"
        ),
        examples=(
            "urllib.error.URLError: <urlopen error [Errno 110] Connection timed out>",
            "httpx.ConnectError: [Errno 101] Network is unreachable",
        ),
        not_examples=(
            "httpx.ConnectError:",
            "httpx.ConnectError: All connection attempts failed",
        ),
        level=Level.WEAK,
        not_near=("wandb", "mlflow"),
    ),
    Signature(
        # the hub is asked by HTTPS; servers of the job's own are not
        pattern=r"requests\.exceptions\.(?:ConnectionError|SSLError|ProxyError|ConnectTimeout|ReadTimeout|ChunkedEncodingError): (?!.{0,60}\bHTTPConnectionPool\(|.{0,200}(?:localhost|127\.0\.0\.1|api\.wandb\.ai)\b)",
        source="requests 2.0-2.34 exceptions.py, as Python prints an exception",
        examples=(
            "requests.exceptions.SSLError: (MaxRetryError(\"HTTPSConnectionPool(host='cdn.example.org', port=443)\"))",
            "requests.exceptions.ConnectionError: ('Connection aborted.', ConnectionResetError(104, 'reset'))",
            "requests.exceptions.ProxyError: HTTPSConnectionPool(host='cdn.example.org', port=443)",
            "requests.exceptions.ConnectTimeout: HTTPSConnectionPool(host='cdn.example.org', port=443)",
            "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='cdn.example.org', port=443)",
            "requests.exceptions.ChunkedEncodingError: ('Connection broken', x)",
        ),
        not_examples=(
            "requests.exceptions.ConnectionError: HTTPConnectionPool(host='10.0.0.4', port=8000): Max retries exceeded with url: /health/",
            "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='localhost', port=8000): Read timed out.",
        ),
        level=Level.WEAK,
        not_near=("wandb", "mlflow"),
    ),
    Signature(
        pattern=r"to host huggingface\.co",
        source="aiohttp 3.0-3.14 client_exceptions.py",
        examples=(
            "aiohttp.client_exceptions.ClientConnectorError: Cannot connect to host huggingface.co:443 ssl:default",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern="Cannot connect to host cdn-lfs",
        source="aiohttp 3.0-3.14 client_exceptions.py",
        examples=(
            "aiohttp.client_exceptions.ClientConnectorError: Cannot connect to host cdn-lfs.huggingface.co:443 ssl:default [Network is unreachable]",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"resolve host: huggingface\.co",
        source="curl 7-8 lib/hostip.c",
        examples=("curl: (6) Could not resolve host: huggingface.co",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"Failed to connect to huggingface\.co",
        source="curl 7-8 lib/connect.c, as git prints it",
        examples=("Failed to connect to huggingface.co",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"\[nltk_data\] Error loading \w{1,60}: <urlopen",
        source="nltk 3.0-3.10 downloader.py",
        examples=("[nltk_data] Error loading punkt: <urlopen error [Errno 111]",),
        not_examples=("[nltk_data] Error loading punkt:",),
        level=Level.WEAK,
        message="NLTK's data could not be downloaded",
        hint="download it in advance with `python -m nltk.downloader`, and set "
        "`NLTK_DATA` to its folder",
    ),
    Signature(
        pattern="CAS service error : (?!IO Error: No space)",
        source="hf-xet 1.0-1.2 (Rust, cas_client)",
        examples=(
            "RuntimeError: Data processing error: CAS service error : Reqwest Error: HTTP status server error (503 Service Unavailable)",
        ),
        not_examples=(
            "RuntimeError: CAS service error : IO Error: No space left on device (os error 28)",
        ),
        level=Level.WEAK,
        message="The hub's storage service (Xet) failed",
        hint="try again; with `HF_HUB_DISABLE_XET=1`, downloads do not use it",
    ),
    Signature(
        pattern=r"Failed to resolve 'huggingface\.co'",
        source="urllib3 2.0-2.8 exceptions.py NameResolutionError",
        examples=("Failed to resolve 'huggingface.co'",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"(?:Max[Rr]etr|SSLError|Timeout|Connection).{0,120}host='(?:huggingface\.co|hf-mirror\.com)'(?!.{0,1500} thrown while requesting )",
        source="urllib3 1.0-2.8 exceptions.py, requests 2.0-2.34 adapters.py",
        examples=(
            "SSLError(MaxRetryError(\"HTTPSConnectionPool(host='huggingface.co', port=443)",
            "Timeout ... host='huggingface.co'",
            "MaxRetr ... host='hf-mirror.com'",
        ),
        not_examples=("pool host='huggingface.co' opened",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="on the Hugging Face Hub either: ",
        source="datasets 3.6.0 load.py",
        examples=("on the Hugging Face Hub either: ",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"on the Hub \((?:LocalEntry|Connection|Offline|SSL|Read|Proxy)",
        source="datasets 2.14-5.2 load.py",
        examples=(
            "on the Hub (LocalEntry",
            "on the Hub (Connection",
            "on the Hub (Offline",
            "on the Hub (SSL",
            "on the Hub (Read",
            "on the Hub (Proxy",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"\[Errno 101\] Network is unreachable",
        source="python 3.3-3.14 Objects/exceptions.c, with glibc's words for ENETUNREACH",
        examples=("[Errno 101] Network is unreachable",),
        level=Level.WEAK,
        near=(
            "huggingface",
            "hf-mirror",
            "modelscope",
            "from_pretrained",
            "load_dataset",
            "urllib3",
        ),
    ),
    Signature(
        pattern="[Tt]emporary failure in name resolution",
        source="glibc 2.36 libc.so.6",
        examples=("socket.gaierror: [Errno -3] Temporary failure in name resolution",),
        level=Level.WEAK,
        near=(
            "huggingface",
            "hf-mirror",
            "modelscope",
            "from_pretrained",
            "load_dataset",
            "urllib3",
        ),
    ),
    Signature(
        pattern="Name or service not known",
        source="glibc 2.36 libc.so.6",
        examples=("10.0.0.3: ssh: Could not resolve hostname node-9: Name or service not known",),
        level=Level.WEAK,
        near=(
            "huggingface",
            "hf-mirror",
            "modelscope",
            "from_pretrained",
            "load_dataset",
            "urllib3",
        ),
    ),
    Signature(
        pattern="429 Client Error: Too Many Requests",
        source="requests 2.0-2.34 models.py raise_for_status",
        examples=(
            "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/gpt2",
        ),
        level=Level.WEAK,
        near=(
            "huggingface",
            "hf-mirror",
            "modelscope",
            "from_pretrained",
            "load_dataset",
            "urllib3",
        ),
        message="The hub limits the rate of requests (HTTP 429)",
        hint="set `HF_TOKEN` on every node, download once in advance (`hf download "
        "MODEL`), and set `HF_HUB_OFFLINE=1` in the job",
    ),
    Signature(
        pattern=r"(?:Max retries exceeded|timed out|Connect(?:ion)?Error|RemoteDisconnected|SSLError).{0,1500}' thrown while requesting (?:HEAD|GET) https?://",
        source="huggingface_hub 0.23-0.36 utils/_http.py, which tries again: the last line of a log",
        examples=(
            "'(MaxRetryError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /a/b (Caused by ConnectTimeoutError(<x>))\"), '(Request ID: 1)')' thrown while requesting HEAD https://huggingface.co/a/b",
            "'(ReadTimeoutError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Read timed out.\"), '(Request ID: 1)')' thrown while requesting GET https://huggingface.co/a/b",
            "'(ProtocolError('Connection aborted.', RemoteDisconnected('Remote end closed connection without response')), '(Request ID: 1)')' thrown while requesting HEAD https://huggingface.co/a/b",
            "'(ConnectionError(\"x\"), '(Request ID: 1)')' thrown while requesting HEAD https://huggingface.co/a/b",
            "'(SSLError(\"x\"), '(Request ID: 1)')' thrown while requesting HEAD https://huggingface.co/a/b",
            "'(ConnectError(\"x\"), '(Request ID: 1)')' thrown while requesting HEAD https://huggingface.co/a/b",
        ),
        not_examples=("'429' thrown while requesting HEAD https://huggingface.co/a/b",),
        level=Level.WEAK,
        final=True,
    ),
    Signature(
        pattern="HTTP Error 429 thrown while requesting",
        source="huggingface_hub 0.23-2.4.0 utils/_http.py",
        message="The model hub limits the rate of requests from this address (HTTP 429)",
        hint="pass a token (`hf auth login`, or `HF_TOKEN`), and download the files once with `hf download MODEL` before the ranks start",
        examples=(
            "HTTP Error 429 thrown while requesting HEAD https://huggingface.co/gpt2/resolve/main/config.json",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"HTTP Error (?P<status>50\d) thrown while requesting",
        source="huggingface_hub 0.23-2.4.0 utils/_http.py",
        message="The model hub answers with an error of its own (HTTP {status})",
        hint="try again later, set `HF_ENDPOINT` to a mirror, or download the files in advance with `hf download MODEL`",
        examples=(
            "HTTP Error 503 thrown while requesting HEAD https://huggingface.co/gpt2/resolve/main/config.json",
        ),
        not_examples=("HTTP Error 50x thrown while requesting HEAD https://huggingface.co/x",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="the client has been closed",
        source="httpx 0.18-0.28 _client.py",
        examples=("the client has been closed",),
        level=Level.WEAK,
        near=(
            "huggingface",
            "hf-mirror",
            "modelscope",
            "from_pretrained",
            "load_dataset",
            "urllib3",
        ),
    ),
    Signature(
        pattern="CERTIFICATE_VERIFY_FAILED",
        source="python 3.6-3.14 Modules/_ssl.c, OpenSSL 1.0-3 ssl/ssl_err.c",
        examples=("CERTIFICATE_VERIFY_FAILED",),
        level=Level.WEAK,
        near=(
            "huggingface",
            "hf-mirror",
            "modelscope",
            "from_pretrained",
            "load_dataset",
            "urllib3",
        ),
        message="The certificate of the hub, or of a proxy in front of it, was not accepted",
        hint="install the proxy's certificate, and set `REQUESTS_CA_BUNDLE` and "
        "`SSL_CERT_FILE` to it",
    ),
    Signature(
        pattern="50[0-9] Server Error: (?:Gateway Time|Service Unavailable)",
        source="requests 2 models.py raise_for_status, huggingface_hub 0.14-2.4 utils/_http.py",
        examples=(
            "huggingface_hub.errors.HfHubHTTPError: 504 Server Error: Gateway Time-out for url: https://huggingface.co/api/models/x",
            "500 Server Error: Service Unavailable",
        ),
        not_examples=(" Server Error: Gateway Time ",),
        level=Level.WEAK,
        near=(
            "huggingface",
            "hf-mirror",
            "modelscope",
            "from_pretrained",
            "load_dataset",
            "urllib3",
        ),
        message="The hub answered with a server error",
        hint="try again later; download in advance (`hf download MODEL`) and set "
        "`HF_HUB_OFFLINE=1` to be independent of it",
    ),
)
