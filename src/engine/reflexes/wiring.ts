import type { Certificate } from '../../features/proof/contract/certificate.ts'
import { tellCertificates } from '../../features/proof/store/certificates.ts'
import { isolateSandbox } from '../../reflexes/isolate-sandbox.ts'
import type { ReflexSituation } from '../../reflexes/decide.ts'
import type { Ground } from '../storage/wiring.ts'
import type { Budget } from '../turns/budget.ts'
import { DeclaredTools } from '../effects/declared-tools.ts'
import { Toolbox } from '../../agent/toolbox.ts'
import { ActionKeys } from './action-keys.ts'
import { LicenceUses } from '../../features/market/scope/licence-use.ts'
import { Certificates } from '../../features/proof/scope/certificates.ts'
import { MayAct } from './may-act.ts'
import { MarketCopy, marketFeature } from '../../features/market/scope/market-copy.ts'
import { Windows, ReflexContexts } from './reflex-context.ts'
import { permit } from '../../agent/permit.ts'
import { Promotions } from '../../features/proof/scope/promotions.ts'
import { isMarketEvent } from '../../features/market/contract/view.ts'
import { Recordings } from './recordings.ts'
import { Judgements } from '../../features/proof/scope/judgements.ts'
import { ShadowTrials, savingsOf } from '../../features/proof/scope/shadow.ts'
import { ReflexSync } from './sync.ts'
import { TeacherWatch } from '../../features/proof/scope/teacher-watch.ts'
import { OwnedReflexes, ReflexVersions } from './versions.ts'

export type Reflexes = Ground & ReturnType<typeof composeReflexes>

/** Wires the chain of reflexes, its trials and the tools that its actions may call. */
export function composeReflexes(parts: Ground) {
  const { scope, database, settings, unit } = parts
  const licence_use = new LicenceUses(parts)
  const programs = new ReflexVersions(database, scope, settings)
  const reflex_sync = new ReflexSync({ ...parts, versions: programs })
  const toolbox = new Toolbox({ ...parts, outside: new DeclaredTools(parts) })
  const owned = new OwnedReflexes(database, unit)
  const market = new MarketCopy(database)
  const teacher_watch = new TeacherWatch(parts)
  const certificates = new Certificates({
    ...parts,
    teacher: () => teacher_watch.current(),
  })
  certificates.onLapse((unit, name) => licence_use.lapsed(unit, programs.find(name) ?? {}))
  const tell = (all: readonly Certificate[]) => tellCertificates(parts.db, scope, all, parts.now())
  parts.outbox.source({ send: () => certificates.report(tell) })
  const market_feature = marketFeature({ licence_use, market, owned, savings: () => savingsOf(parts) })
  const may_act = new MayAct({ ...parts, programs, certificates, toolbox })
  const promotions = new Promotions({ ...parts, licence_use, programs, reflex_sync, certificates, teacher_watch, may_act })
  const judgements = new Judgements({
    ...parts,
    programs,
    certificates,
    toolbox,
    judge: (unit, version) => promotions.judge(unit, version),
  })
  const shadow_trials = new ShadowTrials({ judgements, ...parts, programs, toolbox, promotions, licence_use })
  return {
    licence_use,
    programs,
    reflex_sync,
    toolbox,
    teacher_watch,
    certificates,
    market_feature,
    may_act,
    promotions,
    shadow_trials,
    judgements,
    windows: new Windows(database),
    recordings: new Recordings({ ...parts, toolbox, owned, market }),
    owned,
    market,
    action_keys: new ActionKeys({ database, toolbox }),
  }
}

type SituationLayer = Reflexes & { budget: Budget; turns: { readonly current: { since: number } | null } }

/** The inputs of decisions. The sandbox is created when the first reflex runs. */
export function composeSituation(parts: SituationLayer): (now: number, fuel: number) => ReflexSituation {
  const { agent, settings, memory, programs, records, toolbox, action_keys, may_act } = parts
  const contexts = new ReflexContexts(parts)
  return (now, fuel) => ({
    now,
    fuel,
    perceives: settings().consumer !== 'pull',
    agent: agent().name,
    filters: agent().filters,
    reaches: isMarketEvent,
    context: () => memory.copy(),
    chain: programs.links,
    sandbox: isolateSandbox,
    show: (one, context) => contexts.of(one, context, now),
    history: (who) => records.history(who),
    trial: (version) => records.trial(version),
    mayAct: (version, event_type, action) => may_act.mayAct(version, { event_type, action }, now),
    permit: (action, asked) =>
      permit(action, { ...asked, scope: parts.scope, agents: parts.agents, toolbox, has_trigger: agent().trigger !== null }),
    carriedOut: (reflex_id, key) => action_keys.has(reflex_id, key),
  })
}
