import { tool } from 'ai'
import { z } from 'zod'
import { buildBulletin } from '../../src/skills/bulletin/bulletin.ts'
import { decide } from '../../src/skills/gate/gate.ts'
import { cuesOf } from '../../src/skills/bulletin/score.ts'
import { SkillIndex } from '../../src/skills/bulletin/skill-index.ts'
import { memoryStorage } from '../../src/standalone/storage.ts'
import { ToolCaller } from '../../src/standalone/tools/tool-caller.ts'
import type { JsonFields } from '../../src/base/json.ts'
import { ToolLogValues } from '../../src/standalone/tools/tool-log.ts'
import { proxyTools } from '../../src/standalone/tools/tool-proxy.ts'
import { deployManifest } from '../../tests/unit/skills/deploy-manifest.ts'
import { gateRequest } from '../../tests/unit/skills/gate-request.ts'
import { blocks } from './timed.ts'

const TOPICS = ['deploy', 'rollback', 'scale', 'backup', 'restore', 'rotate', 'drain', 'migrate', 'audit', 'invoice']

/** As in an agent: one topic in ten is mentioned, which leaves a hundred skills that could fire. */
const skills = Array.from({ length: 1000 }, (_, number) => {
  const topic = TOPICS[number % TOPICS.length] ?? ''
  const manifest = deployManifest({ id: `${topic}.skill${number}`, 'activation.goal_labels': [topic], 'activation.keywords_any': [topic] })
  return { manifest, state: 'active' as const }
})
let index: SkillIndex | undefined
const request = gateRequest()
const situation = { text: request.text, goal_labels: request.goal_labels, entity_types: [], compat: request.compat }

/** ms for one decision: what may fire is looked up, and the gate decides on the last of them. */
export function gate(): number[] {
  const found = (index ??= new SkillIndex(skills))
  return blocks(30, 20, () => {
    const manifest = found.candidatesFor(cuesOf(situation), situation.compat).at(-1)
    if (!manifest || decide({ ...request, manifest }).verdict !== 'allow') throw new Error('the gate does not allow what it should')
  })
}

/** ms for one bulletin, once per turn. */
export function bulletin(): number[] {
  const found = (index ??= new SkillIndex(skills))
  return blocks(10, 10, () => buildBulletin({ ...situation, index: found, recent_success: new Set() }))
}

const input = { title: 'Deploy payments to staging', labels: ['deploy', 'staging'], token: 'not to be logged' }
const bare = tool({ inputSchema: z.object({}).loose(), execute: async () => ({ id: 'ticket-17', url: 'https://tickets.example/17' }) })
const redaction = { fields: ['token'], salt: 'bench' }

/** ms that the proxy adds to one call, log and all. */
export async function proxy(): Promise<number[]> {
  const { log, outputs } = memoryStorage()
  const caller = new ToolCaller({
    now: Date.now,
    wait: (ms, signal) => scheduler.wait(ms, { signal }),
    log: (ended) =>
      log.append({ ...(ended as { tool: string } & JsonFields), kind: 'effect-ended', trace_id: 'bench', at: '2026-11-21T05:00:00.000Z' }),
    outputs,
    redaction,
  })
  const { ticket } = proxyTools({ ticket: bare }, { callerFor: () => caller })
  return perCall(async () => void (await ticket.execute?.(input, { toolCallId: 'call-1', messages: [], context: {} })))
}

/** ms to make ready and append what the log has of one call. */
export async function logging(): Promise<number[]> {
  const { log } = memoryStorage()
  return perCall(async () => {
    const values = new ToolLogValues(redaction)
    const fields = { input: await values.value(input), output: await values.value({ id: 'ticket-17' }) }
    log.append({ ...fields, kind: 'effect-ended', trace_id: 'bench', at: '2026-11-21T05:00:00.000Z' })
  })
}

async function perCall(work: () => Promise<void>): Promise<number[]> {
  const size = 200
  const samples: number[] = []
  for (let block = 0; block < 20; block += 1) {
    const start = performance.now()
    for (let call = 0; call < size; call += 1) await work()
    samples.push((performance.now() - start) / size)
  }
  return samples
}
