import type { Command } from 'commander'
import { Refused, type Api } from '../../lib/api.ts'
import { CliError, messageOf } from '../../lib/cli-error.ts'
import type { Colour } from '../../lib/paint.ts'
import { handler, type Outcome, type Session } from '../session.ts'
import { written } from '../table.ts'
import { checksOf, type Check, type Health, type Level } from './checks.ts'

const marks: Record<Level, { mark: string; colour: Colour }> = {
  ok: { mark: '✓', colour: 'green' },
  warning: { mark: '!', colour: 'yellow' },
  failed: { mark: '✗', colour: 'red' },
}

export function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description('Check a server: connectivity, key, bindings, archive, secrets, migrations, clock; exit with 1 if a check fails')
    .action(handler(doctor))
}

async function doctor({ api, print, signal }: Session): Promise<Outcome> {
  const checks = await examined(api(), signal)
  const ok = checks.every(({ level }) => level !== 'failed')
  const width = Math.max(...checks.map(({ name }) => name.length))
  print.result({ ok, checks }, (paint) =>
    checks.flatMap(({ name, level, detail, hint }) => {
      const { mark, colour } = marks[level]
      const line = `${paint(colour, mark)} ${written(name).padEnd(width)}  ${written(detail)}`
      return level === 'ok' || hint === null ? [line] : [line, `  ${' '.repeat(width)}  ${paint('dim', written(hint))}`]
    }),
  )
  return ok ? undefined : 1
}

/** A server that does not respond fails the first check, and is not asked further. */
async function examined(api: Api, signal: AbortSignal): Promise<Check[]> {
  const begun = performance.now()
  try {
    await api.json('/health', { signal })
  } catch (error) {
    return [failed('connection', error)]
  }
  const connection: Check = {
    name: 'connection',
    level: 'ok',
    detail: `${api.url}, ${Math.round(performance.now() - begun)} ms`,
    hint: null,
  }
  const sent = Date.now()
  try {
    const health = await api.json<Health>('/health/detailed', { signal })
    const key: Check = { name: 'key', level: 'ok', detail: 'accepted', hint: null }
    return [connection, key, ...checksOf(health, { sent, received: Date.now() })]
  } catch (error) {
    return [connection, failed(error instanceof Refused ? 'key' : 'health', error)]
  }
}

const failed = (name: string, error: unknown): Check => ({
  name,
  level: 'failed',
  detail: messageOf(error),
  hint: error instanceof CliError ? error.hint : null,
})
