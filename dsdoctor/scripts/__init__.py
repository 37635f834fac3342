"""Command lines of training scripts, judged by the parser that their source states."""
