import { Argument, type Command } from 'commander'
import { handler } from './session.ts'

/** Each script asks `reflex complete` for the words that may follow. */
const scripts = {
  bash: `_reflex() {
  mapfile -t COMPREPLY < <(reflex complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _reflex reflex`,
  zsh: `#compdef reflex
_reflex() {
  local -a found
  found=("\${(@f)$(reflex complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "$found" ]]; then compadd -- $found; else _files; fi
}
compdef _reflex reflex`,
  fish: `function __reflex_words
  set -l found (reflex complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
  if test (count $found) -gt 0
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c reflex -f -a '(__reflex_words)'`,
}
type Shell = keyof typeof scripts

const HELP = `
Examples:
  bash: echo 'source <(reflex completion bash)' >> ~/.bashrc
  zsh:  echo 'source <(reflex completion zsh)' >> ~/.zshrc
  fish: reflex completion fish > ~/.config/fish/completions/reflex.fish`

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('Print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>').choices(Object.keys(scripts)))
    .addHelpText('after', HELP)
    .action(handler(({ print }, shell: Shell) => print.raw(`${scripts[shell]}\n`)))
  program.command('complete [words...]', { hidden: true }).action(
    handler(({ print }, words: string[]) =>
      print.raw(
        completions(program, words)
          .map((word) => `${word}\n`)
          .join(''),
      ),
    ),
  )
}

/** The words that may stand in place of the last one: commands, options, or an option's values. */
export function completions(program: Command, words: readonly string[]): string[] {
  const last = words.at(-1) ?? ''
  let command = program
  for (const word of words.slice(0, -1)) command = command.commands.find((inner) => inner.name() === word) ?? command
  const options = [...new Set([...command.options, ...program.options])]
  const before = options.find(({ long }) => long === words.at(-2))
  if (before?.required) return (before.argChoices ?? []).filter((choice) => choice.startsWith(last))
  const names = last.startsWith('-')
    ? ['--help', ...options.flatMap(({ long, hidden }) => (long == null || hidden ? [] : [long]))]
    : command
        .createHelp()
        .visibleCommands(command)
        .map((inner) => inner.name())
  const choices = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? [])
  return [...names, ...(last.startsWith('-') ? [] : choices)].filter((name) => name.startsWith(last))
}
