import type { z } from 'zod'
import { withDeadline } from '../../../base/deadline.ts'
import { oncePer } from '../../../base/once-per.ts'
import { policyVerdict, type PolicyQuestion, type PolicyVerdict } from '../../../contract/policy.ts'
import { skillFeed, type SkillFeed } from '../contract/skill-feed.ts'
import { telemetryReceipt, type Telemetry, type TelemetryReceipt } from '../contract/telemetry.ts'
import { checkUrl, guardedFetch } from '../../../tools/guarded-fetch.ts'
import { readResponse } from '../../../tools/response-body.ts'

type ControlPlaneConfig = {
  /** Its origin, such as https://control.example.com: https, or http on this machine. */
  url: string
  key: string
  /** Skills of other projects are not followed. */
  project?: string | undefined
}

/** A proposal waits for the answer; background work may wait longer. */
const POLICY_TIMEOUT_MS = 2000
const TIMEOUT_MS = 15_000
const SMALL_BYTES = 64_000
/** Twenty manifests of at most 128 kB, with defaults. */
const FEED_BYTES = 8_000_000

type Call<Schema> = { method: 'GET' | 'POST'; path: string; body?: unknown; schema: Schema; timeout_ms: number; max_bytes: number }

/**
 * Calls the APIs of another deployment. An answer that does not have the expected form is an error,
 * as is no answer; the text of an error answer is not used.
 */
export class ControlPlane {
  readonly #config: ControlPlaneConfig
  readonly #fetch: typeof fetch

  constructor(config: ControlPlaneConfig, send: typeof fetch = (input, init) => fetch(input, init)) {
    this.#config = config
    this.#fetch = send
  }

  get url(): string {
    return this.#config.url
  }

  get project(): string | undefined {
    return this.#config.project
  }

  check(question: PolicyQuestion): Promise<PolicyVerdict> {
    const limits = { timeout_ms: POLICY_TIMEOUT_MS, max_bytes: SMALL_BYTES }
    return this.#call({ method: 'POST', path: '/v1/policy/check', body: question, schema: policyVerdict, ...limits })
  }

  /** A page that does not advance is an error: the caller would ask for it forever. */
  async skills(since: number): Promise<SkillFeed> {
    const query = new URLSearchParams({ since: String(since), ...(this.project !== undefined && { project: this.project }) })
    const limits = { timeout_ms: TIMEOUT_MS, max_bytes: FEED_BYTES }
    const page = await this.#call({ method: 'GET', path: `/v1/skills/sync?${query.toString()}`, schema: skillFeed, ...limits })
    if (page.more && page.revision <= since) throw new Error('the control plane repeated a page of its feed of skills')
    return page
  }

  report(telemetry: Telemetry): Promise<TelemetryReceipt> {
    const limits = { timeout_ms: TIMEOUT_MS, max_bytes: SMALL_BYTES }
    return this.#call({ method: 'POST', path: '/v1/telemetry', body: telemetry, schema: telemetryReceipt, ...limits })
  }

  async #call<Schema extends z.ZodType>({ method, path, body, schema, timeout_ms, max_bytes }: Call<Schema>): Promise<z.infer<Schema>> {
    const { url, key } = this.#config
    const address = URL.parse(path, url)
    if (!address || key === '') throw new Error('the control plane is not configured: it takes an address and a key')
    const headers = new Headers({ authorization: `Bearer ${key}`, accept: 'application/json' })
    if (body !== undefined) headers.set('content-type', 'application/json')
    const answer = await withDeadline(
      async (signal) => {
        const init = { method, headers, signal, ...(body !== undefined && { body: JSON.stringify(body) }) }
        const response = await guardedFetch(address, init, { allowed_hosts: [address.host], fetch: this.#fetch })
        if (response.ok) return readResponse(response, max_bytes)
        await response.body?.cancel()
        throw new Error(`the control plane answered with the status ${response.status}`)
      },
      { timeout_ms, what: 'the control plane' },
    )
    const parsed = schema.safeParse(answer)
    if (!parsed.success) throw new Error('the control plane answered in an unexpected form')
    return parsed.data
  }
}

export type ControlPlaneVariables = {
  REFLEX_CONTROL_PLANE_URL?: string
  REFLEX_CONTROL_PLANE_KEY?: string
  REFLEX_CONTROL_PLANE_PROJECT?: string
}

/**
 * Null without an address. With an address or a key that cannot be used, every call fails: a wrong
 * variable must not switch the policy off.
 */
export const controlPlaneOf = oncePer((variables: ControlPlaneVariables): ControlPlane | null => {
  const { REFLEX_CONTROL_PLANE_URL: url = '', REFLEX_CONTROL_PLANE_KEY: key = '', REFLEX_CONTROL_PLANE_PROJECT: project } = variables
  return url === '' ? null : new ControlPlane({ url, key, project: project === '' ? undefined : project })
})

/** Why the variables cannot be used, or null. */
export function controlPlaneProblem({
  REFLEX_CONTROL_PLANE_URL: url = '',
  REFLEX_CONTROL_PLANE_KEY: key = '',
}: ControlPlaneVariables): string | null {
  if (url === '') return null
  const checked = checkUrl(url, [URL.parse(url)?.host ?? ''])
  if (!checked.ok) return `REFLEX_CONTROL_PLANE_URL: ${checked.reason}`
  return key === '' ? 'REFLEX_CONTROL_PLANE_KEY is not set' : null
}
