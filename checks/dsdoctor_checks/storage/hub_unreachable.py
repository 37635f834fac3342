"""The model hub cannot be reached and the files are not cached.

## Why it matters
Compute nodes often have no way out. A model that is not in the cache cannot be fetched at start.

## What to do
Download the files beforehand, or set `HF_ENDPOINT` or the proxy.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("hub-unreachable", id="DSD1552", scope=Scope.JOB, since="0.1")

HINT = "download the files beforehand, or set `HF_ENDPOINT` or the proxy"

SIGNATURES = (
    Signature(
        anchor=(
            "couldn't connect to 'http",
            "outgoing traffic has been disabled",
            "LocalEntryNotFoundError",
            "Couldn't reach",
            "cannot find the requested files in the",
            "couldn't connect to the Hugging",
            "OfflineModeIsEnabled",
            "Max retries",
            "We couldn't connect to '",
            "Distant resource does not seem",
        ),
        pattern=(
            r"[Ww]e couldn't connect to '|outgoing traffic has been disabled"
            r"|LocalEntryNotFoundError: |Couldn't reach .{1,80}(?:on the Hub"
            r"|Connection|http)|cannot find the requested files in the"
            r"|(?:huggingface\.co|hf\.co|modelscope|hf-mirror)\S{0,20}.{0,80}Max retries"
            r"|OfflineModeIsEnabled: |Distant resource does not seem"
        ),
        examples=(
            "OSError: We couldn't connect to 'https://huggingface.co' to load this file",
            "ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded",
        ),
        not_examples=("raise LocalEntryNotFoundError(",),
        weight=62,
    ),
    Signature(
        anchor=(
            "huggingface.co",
            "hf.co",
            "hf-mirror",
            "cdn-lfs",
            "raw.githubusercontent.com",
            "modelscope",
            "Can't load tokenizer for",
            "Connection error, and we cannot",
            "HF_ENDPOINT",
        ),
        pattern=(
            r"(?:Failed to resolve|Read timed out|Connection to"
            r"|HTTPSConnectionPool\(host=)\s?'?(?:cdn-lfs"
            r"|huggingface\.co|hf\.co|hf-mirror\.com|raw\.githubusercontent\.com)\S{0,80} ?.{0,60}(?:timed out"
            r"|resolve|Max retries|Read|SSL|refused|Proxy)|Failed to resolve 'huggingface"
            r"|Can't load tokenizer for '|Error: .{0,60}huggingface\.co.{0,80}(?:timed out"
            r"|unreachable|refused)"
        ),
        examples=(
            "urllib3.exceptions.NameResolutionError: Failed to resolve 'huggingface.co' ([Errno -2] Name or service not known)",
            "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='huggingface.co', port=443): Read timed out. (read timeout=10)",
            "OSError: Can't load tokenizer for 'bert-base-chinese'. If you were trying to load it from 'https://huggingface.co/models'",
        ),
        not_examples=(
            "OSError: org/x is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'",
        ),
        weight=56,
    ),
    Signature(
        anchor=("Can't load ", "Server Error", "HfHubHTTPError: 5"),
        pattern=(
            r"Can't load (?:the configuration of|tokenizer for"
            r"|the model for|image processor for|feature extractor for"
            r"|config for) '|HfHubHTTPError: 5\d\d|\b50[0-4] Server Error: .{0,80}huggingface\.co"
        ),
        examples=(
            "OSError: Can't load the configuration of 'bert-base-uncased'. If you were trying to load it from 'https://huggingface.co/models'",
            "huggingface_hub.errors.HfHubHTTPError: 504 Server Error: Gateway Time-out for url: https://huggingface.co/api/models/x",
        ),
        not_examples=(
            "401 Client Error: Unauthorized for url: https://huggingface.co/x",
            "Can't load checkpoint x",
        ),
        weight=54,
    ),
    Signature(
        anchor=("<urlopen error", "requests.exceptions.", "httpx.", "httpcore."),
        pattern=(
            r"URLError: <urlopen error (?:\[Errno (?:-?[235]|101|104|110|111|113)\]|\[WinError 100"
            r"|\[SSL|timed out|_ssl|Tunnel)"
            r"|requests\.exceptions\.(?:ConnectionError|SSLError|ProxyError|ConnectTimeout|ReadTimeout"
            r"|ChunkedEncodingError): |(?:httpx|httpcore)\.(?:Connect|Read|Proxy|Remote)\w{1,20}: "
        ),
        examples=(
            "urllib.error.URLError: <urlopen error [Errno 110] Connection timed out>",
            "requests.exceptions.SSLError: (MaxRetryError(\"HTTPSConnectionPool(host='cdn.example.org', port=443)\"))",
            "httpx.ConnectError: [Errno 101] Network is unreachable",
        ),
        not_examples=(
            "urllib.error.URLError: <urlopen error unknown url type: s3>",
            "requests.exceptions.MissingSchema: Invalid URL 'x'",
        ),
        weight=44,
        not_near=("wandb", "mlflow"),
    ),
    Signature(
        anchor=(
            "to host huggingface.co",
            "resolve host: huggingface.co",
            "connect to huggingface.co",
            "Cannot connect to host cdn-lfs",
            "[nltk_data] Error loading",
            "CAS service error",
            "host='huggingface.co'",
            "on the Hugging Face Hub either",
            "Failed to resolve 'huggingface.co'",
            "host='hf-mirror.com'",
            "on the Hub (",
        ),
        pattern=(
            r"to host huggingface\.co|Cannot connect to host cdn-lfs|resolve host: huggingface\.co"
            r"|Failed to connect to huggingface\.co|\[nltk_data\] Error loading \w{1,60}: <urlopen"
            r"|CAS service error : (?!IO Error: No space)|Failed to resolve 'huggingface\.co'"
            r"|(?:Max[Rr]etr|SSLError|Timeout|Connection).{0,120}host='(?:huggingface\.co|hf-mirror\.com)'"
            r"|on the Hugging Face Hub either: |on the Hub \((?:LocalEntry|Connection|Offline|SSL|Read|Proxy)"
        ),
        examples=(
            "aiohttp.client_exceptions.ClientConnectorError: Cannot connect to host huggingface.co:443 ssl:default",
            "[nltk_data] Error loading punkt: <urlopen error [Errno 111]",
            "SSLError(MaxRetryError(\"HTTPSConnectionPool(host='huggingface.co', port=443)",
            "curl: (6) Could not resolve host: huggingface.co",
        ),
        not_examples=(
            "RuntimeError: CAS service error : IO Error: No space left on device (os error 28)",
            "pool host='huggingface.co' opened",
        ),
        weight=46,
    ),
    Signature(
        anchor=(
            "Network is unreachable",
            "name resolution",
            "Name or service not known",
            "Too Many Requests",
            "the client has been closed",
            "CERTIFICATE_VERIFY_FAILED",
            "Gateway Time",
            "Service Unavailable",
        ),
        pattern=(
            r"\[Errno 101\] Network is unreachable|[Tt]emporary failure in name resolution"
            r"|Name or service not known|429 Client Error: Too Many Requests"
            r"|the client has been closed|CERTIFICATE_VERIFY_FAILED"
            r"|50[0-9] Server Error: (?:Gateway Time|Service Unavailable)"
        ),
        examples=(
            "socket.gaierror: [Errno -3] Temporary failure in name resolution",
            "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/gpt2",
        ),
        not_examples=(
            "requests: Too Many Requests are batched",
            "Gateway Time zone",
        ),
        weight=43,
        near=(
            "huggingface",
            "hf-mirror",
            "modelscope",
            "from_pretrained",
            "load_dataset",
            "urllib3",
        ),
    ),
)
