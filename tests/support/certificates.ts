import { DEFAULT_AGREEMENT } from '../../src/contract/agreement.ts'
import type { Certificate, Teacher } from '../../src/contract/certificate.ts'
import type { ReflexVersion } from '../../src/contract/reflex.ts'
import { allow, openCertificate, proceed } from '../../src/evidence/certificate.ts'
import { evict, inObject, stubOf } from './scopes.ts'

/** The slow path of the agent `test-agent` while it calls no model. */
const by_default: Teacher = {
  by: 'model',
  agent_version: 'test-agent',
  model: 'none',
  prompt_hash: '',
  tools_hash: '',
  settings_revision: 0,
}

type Where = {
  event_type?: string
  act?: string
  risk?: Certificate['strata'][number]['risk']
  person?: string
  agent_version?: string
  shape?: string
}

/** The name of the act that a program of a test returns. */
function actIn(code = ''): string {
  const tools = Array.from(code.matchAll(/tool: ["'](\w+)["']/g), ([, tool]) => tool)
  if (tools.length > 0) return tools.join(' + ')
  const skill = /skill_id: ["']([^"']+)["']/.exec(code)?.[1]
  if (skill !== undefined) return `skill ${skill}`
  const type = /action_type: ["'](\w+)["']/.exec(code)?.[1] ?? 'reply'
  return NAMES[type] ?? `does ${type}`
}
const NAMES: Record<string, string> = { reply: 'reply', ignore: 'nothing', set_scratch: 'note' }

/** A certificate whose stratum is proven by as many agreements as it takes. */
export function provenCertificate(
  version: ReflexVersion,
  {
    event_type = 'test.note',
    act = actIn(version.code),
    risk = 'inside',
    person,
    shape,
    agent_version = by_default.agent_version,
  }: Where = {},
): Certificate {
  const teacher = { ...by_default, agent_version }
  let certificate = openCertificate(
    { kind: 'reflex', id: version.id, version: String(version.version), hash: version.hash },
    // By itself, to the bound that is set for no act: any scope takes it.
    { teacher, at: Date.now(), least: { agreement: { [act]: DEFAULT_AGREEMENT }, support: 0 } },
  )
  for (let seq = 1; certificate.bound === null; seq += 1)
    ({ certificate } = proceed(certificate, {
      kind: 'compared',
      event_type,
      risk,
      act,
      agreed: true,
      shape,
      seq,
      at: certificate.issued_at,
      teacher,
    }))
  return person === undefined ? certificate : allow(certificate, { event_type, risk, act }, person)
}

/** Gives a scope the certificate of a version, as if it had been compared there. */
export async function certify(scope: string, version: ReflexVersion, where: Where = {}): Promise<void> {
  const certificate = provenCertificate(version, where)
  await inObject(stubOf(scope), ({ storage: { sql } }) => {
    const insert = 'INSERT OR REPLACE INTO certificates (reflex_id, version, certificate, issued_at) VALUES (?, ?, ?, ?)'
    sql.exec(insert, version.id, version.version, JSON.stringify(certificate), certificate.issued_at)
  })
  await evict(stubOf(scope))
}

export const certificateOf = (scope: string, { id, version }: Pick<ReflexVersion, 'id' | 'version'>): Promise<Certificate> =>
  inObject(stubOf(scope), ({ storage: { sql } }) => {
    const found = sql.exec<{ certificate: string }>('SELECT certificate FROM certificates WHERE reflex_id = ? AND version = ?', id, version)
    return JSON.parse(found.one().certificate) as Certificate
  })
