"""`dpestim completion`: scripts for shells, made from the parser."""

import argparse

from dpestim.commands.parser import DONE

_BASH = """\
_dpestim() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} key="${{COMP_WORDS[1]}}" words
    case "$key ${{COMP_WORDS[2]}}" in
{cases}
        *) words="{commands}" ;;
    esac
    [ "$COMP_CWORD" -eq 1 ] && words="{commands}"
    COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current"))
}}
complete -o filenames -F _dpestim dpestim
"""


def run(args):
    """Print the script of a shell."""
    commands = _words(args.build())
    if args.shell == "fish":
        print(_fish(commands))
        return DONE
    # the longest first: "ledger show" is a case before "ledger"
    cases = "\n".join(f'        "{name}"*) words="{" ".join(words)}" ;;'
                      for name, words in sorted(commands.items(), reverse=True) if name)
    if args.shell == "zsh":
        print("autoload -U +X bashcompinit && bashcompinit")
    print(_BASH.format(cases=cases, commands=" ".join(commands[""])), end="")
    return DONE


def _words(parser, name=""):
    """Return {command: its options and actions}."""
    found = {name: [option for action in parser._actions for option in action.option_strings
                    if option.startswith("--")]}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found[name] = [*action.choices, *found[name]]
            for word, own in action.choices.items():
                found |= _words(own, f"{name} {word}".strip())
        elif action.choices:
            found[name] += list(action.choices)
    return found


def _fish(commands):
    lines = []
    for name, words in commands.items():
        seen = "".join(f"; and __fish_seen_subcommand_from {word}" for word in name.split())
        where = f"true{seen}" if name else "__fish_use_subcommand"
        for word in words:
            what = f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
            lines.append(f"complete -c dpestim -n '{where}' {what}")
    return "\n".join(lines)
