import { applyD1Migrations, createExecutionContext } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { vi } from 'vitest'
import { hashJson } from '../../src/base/json.ts'
import { manifestSchema } from '../../src/skills/manifest/manifest.ts'
import { skills } from '../../src/artifacts/kinds.ts'
import { answerOf, call, request, type Answer, type Call } from './http.ts'
import { CONTROL_HOST, controlPlaneVariables } from './control-plane-variables.ts'
import { app } from './worker.ts'

/** A second deployment of the same Worker, with a database of its own. */
export const controlEnv = { ...env, DB: env.CONTROL_DB, REFLEX_ADMIN_KEY: controlPlaneVariables.REFLEX_CONTROL_PLANE_KEY }
/** The first deployment, as the client of the second one. */
export const clientEnv = { ...env, ...controlPlaneVariables }

export async function prepareControlPlane(): Promise<void> {
  await applyD1Migrations(env.CONTROL_DB, env.MIGRATIONS)
  // The isolate's cache of keys belongs to the database of its first request.
  await call('/v1/keys')
}

const answered = async (asked: Request): Promise<Response> => app.fetch(asked, controlEnv, createExecutionContext())

/** Calls the second deployment. */
export const controlCall = async (path: string, options: Call = {}): Promise<Answer> =>
  answerOf(await answered(request(path, { key: controlPlaneVariables.REFLEX_CONTROL_PLANE_KEY, ...options })))

/** Registers a manifest at the second deployment and makes it active. */
export async function activeThere(manifest: unknown): Promise<{ id: string; version: string }> {
  const { status, body, text } = await controlCall('/v1/skills?tools=any', { json: manifest })
  if (status !== 201) throw new Error(text)
  await stateThere('active', body)
  return body
}

export const stateThere = (state: 'active' | 'deprecated', { id, version }: { id: string; version: string }) =>
  skills.setState(env.CONTROL_DB, { id, version, state, reason: null, forced: { by: 'test', reason: 'test', at: 1 }, now: Date.now() })

type Fault = (asked: Request) => Response | Promise<Response> | null

/** The network, with the second deployment as its only host, and a fault for it. */
export function controlPlaneNetwork() {
  const paths: string[] = []
  const state: { fault: Fault } = { fault: () => null }
  const fetched = vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const asked = new Request(input, init)
    const { host, pathname } = new URL(asked.url)
    if (host !== CONTROL_HOST) throw new Error(`nobody is at ${asked.url}`)
    paths.push(pathname)
    return (await state.fault(asked)) ?? answered(asked)
  })
  return {
    /** The paths that were asked for since the last look. */
    asked: () => paths.splice(0),
    /** Until it is replaced, or null. */
    fault: (fault: Fault | null) => void (state.fault = fault ?? (() => null)),
    restore: () => fetched.mockRestore(),
  }
}

/** An item of a feed as the second deployment would write it. */
export async function feedItem(manifest: unknown): Promise<{ id: string; version: string; hash: string; manifest: unknown }> {
  const parsed = manifestSchema.parse(manifest)
  return { id: parsed.id, version: parsed.version, hash: await hashJson(parsed), manifest: parsed }
}
