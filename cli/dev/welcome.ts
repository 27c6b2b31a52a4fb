import { firstEvent, hasTry } from '../lib/first-event.ts'
import type { Paint } from '../lib/paint.ts'
import { unknownText, type UnknownVariable } from '../reflex/doctor/checks.ts'
import { harmless, quoted } from '../lib/text.ts'

type Started = { project: string; url: string; key: string; own_key: boolean; state: string; model: string; paint: Paint }

/** The first commands that a developer needs; they can be pasted into a shell. */
export function welcome({ project, url, key, own_key, state, model, paint }: Started): string[] {
  const row = (label: string, text: string) => `  ${paint('dim', label.padEnd(8))}${text}`
  return [
    paint('bold', `Reflex is up at ${url}`),
    '',
    row('page', `${url}: sign in with the key below`),
    ...(hasTry(project) ? [row('try', `${url}/try: a form that sends an event`)] : []),
    row('docs', `${url}/docs/`),
    row('health', `${url}/health`),
    row('state', `${state}, kept between runs`),
    row('model', model === 'offline' ? 'offline stand-in: rules, no network (set REFLEX_MODEL in .dev.vars to use a model)' : model),
    row(
      'key',
      own_key ? `generated, kept in ${state}/ (set REFLEX_ADMIN_KEY in .dev.vars to use your own)` : 'REFLEX_ADMIN_KEY in .dev.vars',
    ),
    '',
    `URL=${url}`,
    `KEY=${/^[\w.:@/+=-]+$/.test(key) ? key : quoted(key)}`,
    `export REFLEX_URL="$URL" REFLEX_KEY="$KEY"`,
    '',
    ...firstEvent(project, '$URL'),
    '',
    paint('dim', 'Ctrl-C ends it.'),
  ]
}

/** Warnings of variables that the server was given and does not use. */
export const notices = (unknown: readonly UnknownVariable[], paint: Paint): string[] =>
  unknown.map((variable) => paint('yellow', harmless(`Warning: ${unknownText(variable)}.`)))
