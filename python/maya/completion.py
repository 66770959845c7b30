"""`maya completion bash|zsh|fish`: prints a completion script for verbs and options, made from `maya --help`.

    source <(maya completion bash)          # in ~/.bashrc
    maya completion fish | source           # in config.fish
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys

from maya.installation import program

FILES = {"report", "predict", "compare", "trace", "serve", "search", "calibrate"}


def verbs() -> dict[str, str]:
    text = subprocess.run([program(), "--help"], capture_output=True, text=True).stdout
    found = re.search(r"^S[Uu][Bb][Cc][Oo][Mm][Mm][Aa][Nn][Dd][Ss]:\n(.*?)(?:\n\n|\Z)", text, re.M | re.S)
    lines = re.findall(r"^  (\w[\w-]*) +(\S.*)$", found[1] if found else text, re.M)
    return {name: words.strip() for name, words in lines}


def options(verb: str) -> list[str]:
    text = subprocess.run([program(), verb, "--help"], capture_output=True, text=True).stdout
    return sorted({"--help", *re.findall(r"(?<![\w-])(--[a-z][\w-]*)", text)})


def script(shell: str) -> str:
    known = verbs()
    by_verb = {verb: options(verb) for verb in known}
    if shell == "fish":
        lines = ["complete -c maya -f"]
        for verb, words in known.items():
            lines.append(f"complete -c maya -n __fish_use_subcommand -a {verb} -d {_quoted(words)}")
            for option in by_verb[verb]:
                lines.append(f"complete -c maya -n '__fish_seen_subcommand_from {verb}' -l {option[2:]}")
            if verb in FILES:
                lines.append(f"complete -c maya -n '__fish_seen_subcommand_from {verb}' -F")
        lines.append("complete -c maya -n '__fish_seen_subcommand_from run' -F")
        return "\n".join(lines) + "\n"
    cases = "\n".join(f"    {verb}) words={_quoted(' '.join(found))} ;;" for verb, found in by_verb.items())
    body = f"""_maya() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words="" previous="${{COMP_WORDS[COMP_CWORD-1]}}" i
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W {_quoted(" ".join(known))} -- "$word")); return
  fi
  for ((i = 2; i < COMP_CWORD; i++)); do
    [[ ${{COMP_WORDS[i]}} != -- ]] || {{ COMPREPLY=($(compgen -c -f -- "$word")); return; }}
  done
  if [[ $previous == --cluster ]]; then
    COMPREPLY=($(compgen -W "$(maya clusters --json 2>/dev/null | sed -n 's/.*"name": "\\(.*\\)".*/\\1/p')" -- "$word")); return
  fi
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$words" -- "$word")); else COMPREPLY=($(compgen -f -- "$word")); fi
}}
complete -o filenames -F _maya maya
"""
    return ("autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else "") + body


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "") + "'"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="maya completion",
        description="Completion of verbs and options for a shell",
        epilog="bash: source <(maya completion bash)   fish: maya completion fish | source",
    )
    parser.add_argument("shell", choices=["bash", "zsh", "fish"])
    print(script(parser.parse_args(arguments).shell), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
