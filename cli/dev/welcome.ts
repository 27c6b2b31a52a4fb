import type { Paint } from '../lib/paint.ts'

type Started = { url: string; key: string; own_key: boolean; state: string; model: string; paint: Paint }

/** The first commands that a developer needs; they can be pasted into a shell. */
export function welcome({ url, key, own_key, state, model, paint }: Started): string[] {
  const row = (label: string, text: string) => `  ${paint('dim', label.padEnd(8))}${text}`
  return [
    paint('bold', `Reflex is up at ${url}`),
    '',
    row('page', `${url}: sign in with the key below`),
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
    `KEY=${/^[\w.:@/+=-]+$/.test(key) ? key : `'${key.replaceAll("'", String.raw`'\''`)}'`}`,
    `export REFLEX_URL="$URL" REFLEX_KEY="$KEY"`,
    '',
    `curl -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' "$URL/v1/scopes/chat%2Fme/events?wait=outcome" \\`,
    `  -d '{"type": "ws.message", "connection_id": "me", "content": "hello"}'`,
    '',
    paint('dim', 'Ctrl-C ends it.'),
  ]
}
