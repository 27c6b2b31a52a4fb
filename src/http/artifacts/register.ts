import { registerReflex, registerSkill } from '../../artifacts/kinds.ts'
import { notifyScopes } from '../../artifacts/notify.ts'
import { storedReflex } from '../../artifacts/platform.ts'
import type { RegisterResult } from '../../artifacts/registry.ts'
import { copy, register } from '../../contract/operations/reflexes.ts'
import type { ReflexVersion } from '../../contract/reflex.ts'
import { wayToAct } from '../../reflexes/promotion.ts'
import { hashManifest, parseManifest, type Manifest } from '../../skills/manifest/manifest.ts'
import { register as registerManifest } from '../../skills/operations.ts'
import { hasRole, type Principal } from '../../contract/principal.ts'
import { withComputing } from '../auth/computing.ts'
import { resource, created, serve } from '../describe/operation.ts'
import { conflict, forbidden, invalid } from '../problems/refusals.ts'
import { demandPerson } from './owner-access.ts'
import { reflexAt } from './path.ts'
import { receiptOf } from './present.ts'
import { readable } from './sealed.ts'
import { storeOf } from '../../store/store.ts'
import type { Computing } from '../../base/computing.ts'
import { fieldError, type FieldError } from '../../base/check-json.ts'
import { dryRun } from '../../reflexes/run-reflex.ts'
import { isolateSandbox } from '../../reflexes/isolate-sandbox.ts'
import { sampleWith } from '../../reflexes/reflex-context.ts'
import { checkReflex, type CodeError } from '../../reflexes/static-check.ts'
import { instantiateTemplate } from '../../reflexes/templates/define-template.ts'
import { templates } from '../../reflexes/templates/index.ts'
import type { Agent } from '../../agent/define-agent.ts'
import { actingErrors, anything, checkManifest, type CheckOptions } from '../../skills/check.ts'
import { lintManifest, type Finding } from '../../skills/lint.ts'
import type { Env } from '../../env.ts'
import { argumentErrors } from '../../skills/ci/arguments.ts'
import { destroyingTools, knownInputs } from './tool-inputs.ts'

const MOST_ERRORS = 10

type Source = { code?: string | undefined; template?: string | undefined; params?: Record<string, unknown> | undefined }
type WrittenReflex = { code: string; hash: string; template: string | null; description: string }

/** The code of a body or its template. Throws unless it passes the checks and runs on a sample. */
async function writtenCode(source: Source, sample: Record<string, unknown>, computing: Computing): Promise<WrittenReflex> {
  const { code, ...origin } = codeOf(source)
  const checked = await checkReflex(code)
  if (!checked.ok) throw refusedCode(checked.errors)
  const tried = dryRun(isolateSandbox(), { code, hash: checked.hash }, sampleWith(sample))
  computing.spend(tried.run.fuel)
  if (!tried.ok) throw refusedCode(tried.errors)
  return { code, hash: checked.hash, ...origin }
}

function codeOf({ code, template: name, params }: Source): Omit<WrittenReflex, 'hash'> {
  if (code !== undefined && name === undefined && params === undefined) return { code, template: null, description: '' }
  if (code !== undefined || name === undefined) throw wrongFields('template', 'send either code, or a template and its params')
  const template = templates.find((known) => known.name === name)
  if (!template) throw wrongFields('template', `there is no template ${name}; there are ${templates.map((known) => known.name).join(', ')}`)
  const instance = instantiateTemplate(template, params ?? {})
  if (instance.ok) return { code: instance.code, template: name, description: template.description }
  const errors = instance.errors
    .slice(0, MOST_ERRORS)
    .map(({ path, message }) => ({ path: path === '' ? 'params' : `params.${path}`, message }))
  throw invalid(`Invalid parameters for ${name}: ${errors[0]?.path}: ${errors[0]?.message}.`, errors)
}

const wrongFields = (path: string, message: string) => invalid(`The body is not valid: ${message}.`, [fieldError([path], message)])

function refusedCode(found: readonly CodeError[]) {
  const errors = found
    .slice(0, MOST_ERRORS)
    .map(({ line, column, message }): FieldError => ({ path: 'code', message: `line ${line}, column ${column}: ${message}` }))
  return invalid(`The code is rejected: ${errors[0]?.message}.`, errors)
}

export const artifactRegisterRoutes = resource().openapiRoutes([
  serve(register, async (c, { body: { id, description, state, sharing, sample, ...source } }) => {
    const contributor = contributorOf(c.var.principal)
    const { template, ...written } = await withComputing(c.var.principal, (computing) => writtenCode(source, sample, computing))
    const provenance = { by: contributor.owner, scope: null, template, origin: null }
    const draft = { ...written, ...contributor, id, description: description ?? written.description, state, sharing, provenance }
    const { version, created: is_new } = taken(await registerReflex(storeOf(c.env), draft))
    if (is_new) await notifyScopes(c.env, id)
    return created(is_new, reflexReceipt(version))
  }),
  serve(copy, async (c, { params: { ref }, body: { id } }) => {
    const contributor = { ...contributorOf(c.var.principal), may_take_over: false }
    const found = await reflexAt(storeOf(c.env), ref, c.var.principal)
    const { code, hash, description, ...of } = readable(found)
    const isTaken = conflict('id-taken', `The reflex ${id} exists already. Copy it under another id.`)
    if (await storedReflex(storeOf(c.env), id)) throw isTaken
    const provenance = { by: contributor.owner, scope: null, template: null, origin: { id: of.id, version: of.version, hash } }
    const copied = await registerReflex(storeOf(c.env), { ...contributor, id, code, hash, description, state: 'draft', provenance })
    // Another call may have registered the id in between.
    if (!copied.ok || !copied.created) throw isTaken
    return reflexReceipt(copied.version)
  }),
  serve(registerManifest, async (c, { query: { tools } }) => {
    const contributor = contributorOf(c.var.principal)
    const manifest = checkedManifest(await c.req.json(), tools, c.var.agents.agents)
    if (tools === 'known') await demandArguments(c.env, manifest, contributor.scopes)
    const draft = { ...contributor, manifest, hash: await hashManifest(manifest), provenance: { by: contributor.owner, scope: null } }
    const { version, created: is_new } = taken(await registerSkill(storeOf(c.env), draft))
    return created(is_new, { ...receiptOf(version), ...findingsOf(manifest) })
  }),
])

const reflexReceipt = (version: ReflexVersion) => ({
  ...receiptOf(version),
  next: wayToAct({ ...version, by_agent: version.provenance.scope !== null }),
})

function contributorOf(principal: Principal) {
  demandPerson(principal)
  const { name, key_id, scopes } = principal
  return { owner: name, owner_id: key_id, scopes, may_take_over: hasRole(principal, 'admin'), now: Date.now() }
}

const codes = { other_content: 'version-taken', too_many_versions: 'too-many-versions' }

function taken<Version>(registered: RegisterResult<Version>): Extract<RegisterResult<Version>, { ok: true }> {
  if (registered.ok) return registered
  const { reason, detail } = registered
  throw reason === 'not_owner' ? forbidden(detail) : conflict(codes[reason], detail)
}

const MOST_FIELD_ERRORS = 100
/** These are routes. */
const TAKEN = new Set(['schema', 'sync'])
/** Tools that a scope's settings declare, so that they are unknown here. */
const OF_SCOPES = /^(?:http|mcp)\./

/** `any`: accept tools and probes that this deployment lacks; they may be added later. */
type KnownTools = 'known' | 'any'

/** The manifest in a body. Throws a problem that lists all errors. */
function checkedManifest(body: unknown, tools: KnownTools, agents: readonly Agent[]): Manifest {
  const parsed = parseManifest(body)
  if (!parsed.ok) throw refused(parsed.errors)
  const { manifest } = parsed
  if (TAKEN.has(manifest.id)) throw refused([{ path: 'id', message: `the id ${manifest.id} is taken` }])
  const checked = checkManifest(manifest, tools === 'any' ? anything(manifest) : deployed(manifest, agents))
  if (!checked.ok) throw refused(checked.errors.map(dotted))
  return manifest
}

/** The tools and probes of this deployment's agents. */
const deployed = (manifest: Manifest, agents: readonly Agent[]): CheckOptions => ({
  tools: [...new Set([...agents.flatMap(({ tools }) => Object.keys(tools)), ...toolsIn(manifest).filter((tool) => OF_SCOPES.test(tool))])],
  probes: ['origin', ...agents.flatMap(({ probes = {} }) => Object.keys(probes))],
  acting: actingIn(agents),
})

/** The tools of the agents that another one undoes. */
const actingIn = (agents: readonly Agent[]): ReadonlyMap<string, string> =>
  new Map(
    agents.flatMap(({ tools }) =>
      Object.entries(tools).flatMap(([name, { undoes }]): [string, string][] =>
        undoes
          ? [
              [undoes.tool, `${name} undoes it`],
              [name, `it undoes ${undoes.tool}`],
            ]
          : [],
      ),
    ),
  )

const toolsIn = ({ plan, preconditions }: Manifest): string[] => [
  ...preconditions.tools_available,
  ...[...plan.steps, ...plan.compensation].map(({ tool }) => tool),
]

/** Refuses arguments that no scope's HTTP tools take: each run of the skill would fail. */
async function demandArguments(env: Env, manifest: Manifest, scopes: readonly string[]): Promise<void> {
  const known = await knownInputs(env, manifest, scopes)
  const destroying = await destroyingTools(env, manifest, scopes)
  const acting = new Map([
    ...Array.from(known).flatMap(([tool, { acts }]): [string, string][] => (acts ? [[tool, acts]] : [])),
    ...destroying,
  ])
  const errors = [...argumentErrors(manifest, known), ...actingErrors(manifest, acting).map(dotted)]
  if (errors.length > 0) throw refused(errors)
}

/** The findings about a manifest, if it has any. */
export function findingsOf(manifest: Manifest): { findings?: Finding[] } {
  const findings = lintManifest(manifest).map(dotted)
  return findings.length > 0 ? { findings } : {}
}

/** Writes `plan.steps.0.tool` as the schema's errors do: `plan.steps[0].tool`. */
const dotted = <At extends FieldError>(error: At): At => ({ ...error, path: error.path.replaceAll(/\.(\d+)(?=\.|$)/g, '[$1]') })

function refused(errors: readonly FieldError[]) {
  const [{ path, message } = { path: '', message: 'it is refused' }] = errors
  const more = errors.length > 1 ? `, and ${errors.length - 1} more` : ''
  return invalid(`The manifest is not valid: ${path === '' ? '' : `${path}: `}${message}${more}.`, errors.slice(0, MOST_FIELD_ERRORS))
}
