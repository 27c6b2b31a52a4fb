import type { Command } from 'commander'
import { configure } from '../../../src/contract/operations/scopes.ts'
import { UsageError } from '../../lib/cli-error.ts'
import { ask } from '../ask.ts'
import { handler, type Session } from '../session.ts'
import { fields, safeJson } from '../table.ts'
import { fileText, jsonObject } from '../values.ts'

const HELP = `
A value is JSON, or else text; null restores the default; name=@file reads the text of a file.
docs/settings.md describes each setting.

Examples:
  reflex scope set chat/me max_turns=3 'instructions=You answer in one sentence.'
  reflex scope set chat/me instructions=@prompt.md when=null
  reflex scope set chat/me --from settings.json`

export function addSet(scope: Command): void {
  scope
    .command('set <scope> [settings...]')
    .description('Change settings; those that are not named stay')
    .option('--from <file>', 'a JSON object of settings; - is standard input')
    .addHelpText('after', HELP)
    .action(handler(set))
}

async function set({ api, print, signal }: Session, scope: string, pairs: string[], { from }: { from?: string }): Promise<void> {
  const patch = { ...(from !== undefined && jsonObject(`@${from}`, from)), ...settingsIn(pairs) }
  if (Object.keys(patch).length === 0) throw new UsageError('Name a setting: name=value, or --from FILE.')
  const answer = await ask({ api, signal }, configure, { path: [scope], fields: patch })
  const settings: Record<string, unknown> = answer.settings
  // A setting that was reset, and that has no default, is not in the answer.
  const changed = Object.keys(patch).map((name) => [name, settings[name] === undefined ? 'not set' : safeJson(settings[name])])
  print.result(answer, (paint) => fields(Object.fromEntries(changed), paint))
}

/** Throws a UsageError for a pair without a name. */
export function settingsIn(pairs: readonly string[]): Record<string, unknown> {
  const named = pairs.map((pair) => {
    const [, name = '', value = ''] = /^([\w.]+)=(.*)$/s.exec(pair) ?? []
    if (name === '') throw new UsageError(`${JSON.stringify(pair)} is not a setting: write name=value.`)
    return [name, value.startsWith('@') ? fileText(value.slice(1)) : valueOf(value)]
  })
  return Object.fromEntries(named)
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
