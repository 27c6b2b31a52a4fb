import { sampleContext, type ReflexContext } from '../../src/reflexes/reflex-context.ts'

const failure = (number: number) => ({
  ...sampleContext.event,
  id: `01993f2e-7c00-7000-8000-${String(number).padStart(12, '0')}`,
  type: 'ssh.failed',
  source: 'sshd:web-1',
  address: `203.0.113.${number}`,
  line: `Nov 21 05:00:0${number} web-1 sshd[2420${number}]: Failed password for root from 203.0.113.${number} port 52112 ssh2`,
})

const recent_events = Array.from({ length: 8 }, (_, number) => failure(number))

/** A full context as a scope builds it: 4 kB of JSON. */
export const contextOf4kB: ReflexContext = {
  ...sampleContext,
  tick: 10,
  recent_events,
  event: failure(9),
  scratch: { blocked: ['203.0.113.1'] },
}
