import { registerReflex, registerSkill } from '../../artifacts/kinds.ts'
import { notifyScopes } from '../../artifacts/notify.ts'
import { storedReflex } from '../../artifacts/platform.ts'
import type { RegisterResult } from '../../artifacts/registry.ts'
import { copy, register } from '../../contract/operations/reflexes.ts'
import type { ReflexVersion } from '../../contract/reflex.ts'
import { wayToAct } from '../../reflexes/promotion.ts'
import { hashManifest } from '../../skills/manifest/manifest.ts'
import { register as registerManifest } from '../../skills/operations.ts'
import { hasRole, type Principal } from '../../contract/principal.ts'
import { withComputing } from '../auth/computing.ts'
import { resource } from '../describe/describe.ts'
import { created, serve } from '../describe/operation.ts'
import { conflict, forbidden } from '../problems/refusals.ts'
import { writtenCode } from './reflex-source.ts'
import { checkedManifest, demandArguments } from './skill-source.ts'
import { demandPerson } from './owner-access.ts'
import { reflexAt } from './path.ts'
import { receiptOf } from './present.ts'
import { readable } from './sealed.ts'
import { storeOf } from '../../store/store.ts'

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
    const { code, hash, description, ...of } = readable('reflex', found)
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
    return created(is_new, receiptOf(version))
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
