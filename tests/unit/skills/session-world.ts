import type { JsonFields } from '../../../src/base/json.ts'
import { ScopedLocks } from '../../../src/core/scoped-locks.ts'
import { SkillIndex } from '../../../src/skills/bulletin/skill-index.ts'
import type { Manifest, FoundSkill } from '../../../src/skills/manifest/manifest.ts'
import { seedBlackboard, type Seeds } from '../../../src/skills/plan/blackboard.ts'
import type { JournalEntry } from '../../../src/skills/runner/ports.ts'
import type { SessionSettings } from '../../../src/skills/session/context.ts'
import type { ParkedRun, RunRecord, SessionEntry, SessionPorts, ProposalRequest } from '../../../src/skills/session/ports.ts'
import { SkillSession } from '../../../src/skills/session/session.ts'
import { deployManifest } from './deploy-manifest.ts'
import { gateRequest, NOW } from './gate-request.ts'

type Tool = (args: JsonFields) => unknown

/** A host in memory, whose skills, tools and answers a test sets. */
export class SessionWorld {
  skills: FoundSkill[] = [{ manifest: deployManifest(), state: 'active' }]
  tools: Record<string, Tool> = { 'term.exec': () => 'done', 'tests.run': () => 'done' }
  /** The output of a pinned parser's model. */
  answer = '{}'
  readonly log: SessionEntry[] = []
  readonly parked: ParkedRun[] = []
  readonly runs = new Map<string, { record: RunRecord; status: string | null }>()
  readonly called: { tool: string; args: JsonFields }[] = []
  readonly asked: string[] = []
  readonly good = new Map<string, JsonFields>()
  readonly chains: (readonly string[])[] = []
  recent_success = new Set<string>()
  running = 0
  readonly #journals = new Map<string, Map<string, JournalEntry>>()
  readonly #keys = new ScopedLocks()
  #ids = 0

  session(settings: Partial<SessionSettings> = {}, seeds: Seeds = {}, ports: Partial<SessionPorts> = {}): SkillSession {
    const { blackboard } = gateRequest()
    const seeded = seedBlackboard({ settings: blackboard, ...seeds })
    if (!seeded.ok) throw new Error(seeded.detail)
    return new SkillSession({ trace_id: 'trace-1', place: gateRequest().compat, seeded, ...settings }, { ...this.ports(), ...ports })
  }

  ports(): SessionPorts {
    return {
      registry: {
        index: () => new SkillIndex(this.skills),
        find: (id, version) =>
          this.skills.find(({ manifest }) => manifest.id === id && (version === undefined || manifest.version === version)) ?? null,
        recentSuccess: () => this.recent_success,
        usage: () => ({ last_run_at: null, running: this.running }),
      },
      runner: ({ chain, run_id }) => {
        this.chains.push(chain)
        return {
          journal: {
            load: async () => [...this.#journalOf(run_id).values()],
            begin: async (_, begun) => void this.#journalOf(run_id).set(`${begun.phase} ${begun.index}`, { ...begun, begun, end: null }),
            end: async (_, place, end, told) => {
              this.#journalOf(run_id).set(`${place.phase} ${place.index}`, { ...place, begun: null, end })
              this.log.push(told)
            },
          },
          callTool: async (tool, args) => {
            this.called.push({ tool, args })
            return { output: await this.tools[tool]?.(args), cost_usd: 0 }
          },
          lastGood: async (key) => (this.good.has(key) ? { outputs: this.good.get(key) ?? null, detail: null } : null),
          remember: async (key, outputs) => void this.good.set(key, outputs),
          alone: (key, work) => this.#keys.run(key, work),
          wait: () => new Promise(() => {}),
        }
      },
      runs: {
        begin: async (record) => {
          this.runs.set(record.run_id, { record, status: null })
          this.running += 1
        },
        end: async (run_id, { status }, told) => {
          this.log.push(...told)
          const run = this.runs.get(run_id)
          if (run) run.status = status
          this.running -= 1
        },
      },
      approvals: {
        park: async (run, told) => {
          this.parked.push(run)
          const approval_id = `approval-${this.parked.length}`
          this.log.push(told(approval_id))
          return { ok: true, approval_id, asked_before: false }
        },
      },
      tools: () => Object.keys(this.tools),
      probes: { deploy_window: () => 'open', risk_scan: () => 'low' },
      ask: async ({ prompt }) => {
        this.asked.push(prompt)
        return this.answer
      },
      log: (entry) => this.log.push(entry),
      redact: (value) => value,
      now: () => NOW,
      newId: () => `id-${++this.#ids}`,
    }
  }

  #journalOf(run_id: string): Map<string, JournalEntry> {
    const journal = this.#journals.get(run_id) ?? new Map<string, JournalEntry>()
    this.#journals.set(run_id, journal)
    return journal
  }

  kinds(): string[] {
    return this.log.map(({ kind }) => kind)
  }

  use(manifest: Manifest, state: FoundSkill['state'] = 'active'): void {
    this.skills = [{ manifest, state }]
  }
}

export const inputs = { app_name: 'payments-stg-webapp', image_tag: 'acr.io/pay:abc' }
export const deploy = { skill_id: 'deploy.container.appservice', inputs, why: 'image is ready' }
export const request: ProposalRequest = {
  from: 'model',
  roles: ['publisher', 'ReleaseManager'],
  text: 'Deploy latest to staging',
  goal_labels: ['deploy'],
}
