"""The experiment tracker is not logged in, or cannot be reached.

## Why it matters
Trackers such as Weights & Biases ask for a login when the run starts. In a job there is nobody to type one,
and many compute nodes do not reach the internet, so the run ends before its first step. The Hugging Face
Trainer of transformers 4 starts every tracker that is installed unless `report_to` says otherwise.

## What to do
Log in once as the user of the job (`wandb login`), or set the key in its environment (`WANDB_API_KEY`,
`COMET_API_KEY`). On nodes without internet, record offline (`WANDB_MODE=offline`) and upload later with
`wandb sync`. To do without the tracker, pass `--report_to none`.

## References
- wandb 0.10 to 0.22: sdk/wandb_login.py, sdk/wandb_init.py, errors
- mlflow 2 and 3: utils/rest_utils.py
- https://docs.wandb.ai/guides/track/environment-variables
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition(
    "experiment-tracker-unavailable",
    id="DSD1752",
    scope=Scope.JOB,
    since="0.1",
    transient="a server that was down may be up next time",
)

HINT = "log in as the user of the job, record offline, or turn the tracker off (`--report_to none`)"

SIGNATURES = (
    Signature(
        pattern=r"api_key not configured \(no-tty\)",
        source="wandb 0.10-0.22 sdk/wandb_login.py",
        examples=(
            "wandb.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])",
            "wandb: ERROR api_key not configured (no-tty). call wandb.login(key=[your_api_key])",
        ),
        level=Level.CERTAIN,
        message="Weights & Biases is not logged in, and nobody can type a key in this job",
        hint="run `wandb login` as the user of the job, or set `WANDB_API_KEY`; or do without it:"
        " `WANDB_MODE=offline`, or `--report_to none`",
    ),
    Signature(
        pattern=r"API key must (?:be|have) (?:at least )?\d{1,3} characters(?: long)?, yours was|AuthenticationError: .{0,60}API key .{0,40}(?:invalid|missing)",
        source="wandb 0.10-0.22 sdk/lib/apikey.py, sdk/wandb_init.py",
        examples=(
            "ValueError: API key must be 40 characters long, yours was 39",
            "ValueError: API key must have 40 characters, yours was 12",
            "wandb.errors.errors.AuthenticationError: The API key you provided is either invalid or missing.",
        ),
        not_examples=("openai.AuthenticationError: Incorrect API key provided: sk-x",),
        near=("wandb",),
        level=Level.STRONG,
        message="Weights & Biases rejects its API key",
        hint="run `wandb login --relogin` as the user of the job, and check `WANDB_API_KEY`",
    ),
    Signature(
        pattern=r"(?:Comm|Usage)Error: (?:Run initialization has timed out|Error communicating with wandb process)",
        source="wandb 0.12-0.22 sdk/wandb_init.py",
        examples=(
            "wandb.errors.CommError: Run initialization has timed out after 90.0 sec.",
            "wandb.errors.CommError: Error communicating with wandb process, exiting...",
            "wandb.errors.UsageError: Error communicating with wandb process",
        ),
        level=Level.STRONG,
        message="Weights & Biases did not answer when the run started",
        hint="set `WANDB_MODE=offline` and upload later with `wandb sync`, or set the proxy"
        " (`HTTPS_PROXY`) if the node reaches the internet through one",
    ),
    Signature(
        pattern=r"(?:CommError|Error while calling W&B API): .{0,120}(?:permission denied|[Pp]ermission denied to access|returned error 403)",
        source="wandb 0.10-0.22 sdk/internal/internal_api.py",
        examples=(
            "wandb.errors.CommError: It appears that you do not have permission to access the requested resource: permission denied",
            "wandb: ERROR Error while calling W&B API: permission denied (<Response [403]>)",
            "wandb.errors.errors.CommError: Error uploading run: Permission denied to access lab/run",
            "wandb.errors.errors.CommError: Error uploading run: returned error 403",
        ),
        not_examples=("fork/exec train.sh: permission denied",),
        level=Level.STRONG,
        message="Weights & Biases denies this account access to the project or team",
        hint="check the entity and project of the run, and `wandb login --relogin` with the right account",
    ),
    Signature(
        pattern=r"^wandb\.(?:errors|sdk)(?:\.\w{1,40}){0,4}\.(?:CommError|WandbApiFailedError): ",
        source="wandb 0.10-0.27 errors/__init__.py, errors/errors.py, apis/normalize.py,"
        " sdk/lib/service/service_connection.py",
        examples=(
            "wandb.errors.CommError: <Response [409]>",
            "wandb.errors.errors.CommError: Failed to execute API request: no answer",
            "wandb.sdk.lib.service.service_connection.WandbApiFailedError: relogin required",
        ),
        not_examples=("see wandb.errors.CommError: no", "see wandb.sdk.WandbApiFailedError: no"),
        unless=("project not found",),
        message="Weights & Biases rejected a request, or did not answer it",
        hint="look for what the server said in the lines around it; set `WANDB_MODE=offline` and upload"
        " later with `wandb sync`",
    ),
    Signature(
        pattern=r"MlflowException: API request to (?P<url>\S{1,200}) failed",
        source="mlflow 1.20-3.6 utils/rest_utils.py",
        examples=(
            "mlflow.exceptions.MlflowException: API request to http://127.0.0.1:5000/api/2.0/mlflow/runs/create failed with exception HTTPConnectionPool(host='127.0.0.1', port=5000): Max retries exceeded",
        ),
        not_examples=("MlflowException: API request to failed",),
        level=Level.STRONG,
        message="MLflow's server cannot be reached: {url}",
        hint="check `MLFLOW_TRACKING_URI` from this node, or pass `--report_to none`",
    ),
    Signature(
        pattern=r"Comet\.ml requires an API key|Comet API key is not (?:set|configured)",
        source="comet_ml 3.20-3.50 experiment.py",
        examples=(
            "ValueError: Comet.ml requires an API key. Please provide as the first argument to Experiment(api_key) or as an environment variable named COMET_API_KEY",
            "COMET ERROR: The given Comet API key is not set",
            "COMET ERROR: Comet API key is not configured",
        ),
        level=Level.STRONG,
        message="Comet is not logged in",
        hint="set `COMET_API_KEY` in the job's environment, or pass `--report_to none`",
    ),
    Signature(
        pattern=r"HTTPSConnectionPool\(host='api\.(?:wandb\.ai|neptune\.ai|clear\.ml|swanlab\.cn)'.{0,60}: Max retries exceeded",
        source="requests 2.0-2.34, as wandb 0.10-0.25, neptune, clearml and swanlab use it",
        examples=(
            "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='api.wandb.ai', port=443): Max retries exceeded with url: /graphql",
            "HTTPSConnectionPool(host='api.neptune.ai', port=443): Max retries exceeded",
            "HTTPSConnectionPool(host='api.clear.ml', port=443): Max retries exceeded",
            "HTTPSConnectionPool(host='api.swanlab.cn', port=443): Max retries exceeded",
        ),
        not_examples=("HTTPSConnectionPool(host='api.wandb.ai', port=443): retried",),
        masks=("hub-unreachable",),
    ),
)
