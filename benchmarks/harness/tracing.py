"""kind = "trace": who runs and who waits while a server serves four clients (trace.py does it)."""

from harness import docroot, programs, trace
from harness.context import Context, Repetition, expand_all, folders
from harness.errors import RepetitionError, Unsupported
from harness.model import Experiment, Params, Variant


def run(experiment: Experiment, variant: Variant, params: Params, context: Context) -> Repetition:
    missing = trace.unavailable()
    if missing:
        raise Unsupported(*missing)
    root = docroot.prepare(experiment.docroot)
    values: Params = {**params, **folders(variant), "docroot": str(root)}
    server = programs.build_folder(variant.build) / variant.server
    command = [str(server), "-p", "0", *expand_all(variant.args, values), str(root)]
    try:
        recording = trace.record(command, timeout_s=min(context.timeout, 30.0))
    except trace.Unsupported as error:
        raise Unsupported(str(error)) from error
    except trace.TraceError as error:
        raise RepetitionError(str(error)) from error
    samples = {name: list(column) for name, column in recording.samples.items()}
    return Repetition(samples=samples, scalars=dict(recording.scalars))
