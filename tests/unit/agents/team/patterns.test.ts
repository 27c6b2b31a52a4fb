import { describe, expect, it } from 'vitest'
import {
  firstToComplete,
  parallel,
  sequential,
  supervised,
  withFallback,
  withRetry,
  withTimeout,
  type Worker,
} from '../../../../examples/agents/team/patterns.ts'
import { ModelRefused } from '../../../../src/models/model-errors.ts'

const open = () => new AbortController().signal
const append =
  (text: string): Worker =>
  async (input) =>
    `${input}${text}`
const fails =
  (reason: string): Worker =>
  async () => {
    throw new Error(reason)
  }
const refusal = new ModelRefused({ ok: false, reason: 'budget', until: null, detail: 'spent' })
const refuses: Worker = async () => {
  throw refusal
}

/** A worker that ends only on abort, and records the reason. */
function waiting() {
  const reasons: unknown[] = []
  const worker: Worker = (_, signal) =>
    new Promise((_resolve, reject) => {
      const stop = () => {
        reasons.push(signal.reason)
        reject(signal.reason)
      }
      if (signal.aborted) stop()
      else signal.addEventListener('abort', stop)
    })
  return { worker, reasons }
}

describe('sequential', () => {
  it('gives each what the one before made', async () => {
    expect(await sequential(append('b'), append('c'), append('d'))('a', open())).toBe('abcd')
  })

  it('stops once its signal aborts', async () => {
    const stop = new AbortController()
    const last: string[] = []
    const stopping: Worker = async (input) => {
      stop.abort(new Error('stopped'))
      return input
    }
    const recording: Worker = async (input) => {
      last.push(input)
      return input
    }
    await expect(sequential(stopping, recording)('a', stop.signal)).rejects.toThrow('stopped')
    expect(last).toEqual([])
  })
})

describe('parallel', () => {
  it('gives all the same, and keeps their order', async () => {
    const slow: Worker = async (input) => {
      await new Promise((resolve) => setTimeout(resolve, 5))
      return `${input}1`
    }
    expect(await parallel(slow, append('2'))('a', open())).toEqual(['a1', 'a2'])
  })

  it('begins all before any has ended', async () => {
    let running = 0
    const { promise, resolve } = Promise.withResolvers<void>()
    const meeting: Worker = async (input) => {
      if ((running += 1) === 3) resolve()
      await promise
      return input
    }
    expect(await parallel(meeting, meeting, meeting)('a', open())).toHaveLength(3)
  })

  it('stops the others where one fails', async () => {
    const { worker, reasons } = waiting()
    await expect(parallel(worker, fails('no'))('a', open())).rejects.toThrow('no')
    expect(reasons).toHaveLength(1)
  })
})

describe('first to complete', () => {
  it('takes the first answer, and stops the losers', async () => {
    const [one, two] = [waiting(), waiting()]
    expect(await firstToComplete(one.worker, append('!'), two.worker)('a', open())).toBe('a!')
    expect([...one.reasons, ...two.reasons]).toMatchObject([{ name: 'AbortError' }, { name: 'AbortError' }])
  })

  it('takes a slow answer before a quick failure', async () => {
    const slow: Worker = async () => new Promise((resolve) => setTimeout(resolve, 5, 'late'))
    expect(await firstToComplete(fails('no'), slow)('a', open())).toBe('late')
  })

  it('tells of every failure where all fail, but of a refusal alone', async () => {
    await expect(firstToComplete(fails('no'), fails('never'))('a', open())).rejects.toThrow('no worker completed: Error: no; Error: never')
    await expect(firstToComplete(fails('no'), refuses)('a', open())).rejects.toBe(refusal)
  })

  it('stops with its signal', async () => {
    const stop = new AbortController()
    const { worker } = waiting()
    const running = firstToComplete(worker, worker)('a', stop.signal)
    stop.abort(new Error('cancelled'))
    await expect(running).rejects.toThrow('cancelled')
  })
})

describe('a supervisor', () => {
  it('plans, has each part worked on at once, and concludes', async () => {
    const team = supervised({
      plan: async (task) => [`${task}1`, `${task}2`],
      work: append('!'),
      conclude: async (parts) => parts.join(' '),
    })
    expect(await team('a', open())).toBe('a1! a2!')
  })

  it('stops the other parts where one fails', async () => {
    const { worker, reasons } = waiting()
    const work: Worker = (part, signal) => (part === 'bad' ? fails('no')(part, signal) : worker(part, signal))
    const team = supervised({ plan: async () => ['good', 'bad'], work, conclude: async () => 'never' })
    await expect(team('a', open())).rejects.toThrow('no')
    expect(reasons).toHaveLength(1)
  })
})

describe('with a timeout', () => {
  it('passes on what comes in time', async () => {
    expect(await withTimeout(1000, append('!'))('a', open())).toBe('a!')
  })

  it('stops what takes too long', async () => {
    const { worker, reasons } = waiting()
    await expect(withTimeout(5, worker)('a', open())).rejects.toMatchObject({ name: 'TimeoutError' })
    expect(reasons).toHaveLength(1)
  })

  it('does not wait for one that does not heed its signal', async () => {
    await expect(withTimeout(5, () => new Promise(() => {}))('a', open())).rejects.toMatchObject({ name: 'TimeoutError' })
  })

  it('stops with its signal', async () => {
    const { worker } = waiting()
    await expect(withTimeout(1000, worker)('a', AbortSignal.abort(new Error('cancelled')))).rejects.toThrow('cancelled')
  })
})

describe('with retries', () => {
  /** Fails so many times, then answers. */
  function flaky(failures: number) {
    const pauses: number[] = []
    let calls = 0
    const worker: Worker = async () => {
      if ((calls += 1) <= failures) throw new Error(`failure ${calls}`)
      return `call ${calls}`
    }
    const sleep = async (ms: number) => void pauses.push(ms)
    return { worker: withRetry({ attempts: 4, base_ms: 100, sleep }, worker), pauses }
  }

  it('tries again, after twice as long each time', async () => {
    const { worker, pauses } = flaky(3)
    expect(await worker('a', open())).toBe('call 4')
    expect(pauses).toEqual([100, 200, 400])
  })

  it('gives up after its attempts, with the last failure', async () => {
    const { worker, pauses } = flaky(9)
    await expect(worker('a', open())).rejects.toThrow('failure 4')
    expect(pauses).toHaveLength(3)
  })

  it('does not retry if no model may be called, or after an abort', async () => {
    let calls = 0
    const counting =
      (worker: Worker): Worker =>
      (input, signal) => {
        calls += 1
        return worker(input, signal)
      }
    const retry = (worker: Worker) => withRetry({ attempts: 3, base_ms: 1 }, counting(worker))
    await expect(retry(refuses)('a', open())).rejects.toBe(refusal)
    await expect(retry(fails('no'))('a', AbortSignal.abort())).rejects.toThrow('no')
    const refused = Object.assign(new Error('wrong key'), { name: 'AI_APICallError', statusCode: 401 })
    const forbidden: Worker = async () => {
      throw refused
    }
    await expect(retry(forbidden)('a', open())).rejects.toBe(refused)
    expect(calls).toBe(3)
  })

  it('really pauses, and stops pausing with its signal', async () => {
    const stop = new AbortController()
    const running = withRetry({ attempts: 2, base_ms: 60_000 }, fails('no'))('a', stop.signal)
    await new Promise((resolve) => setTimeout(resolve, 1))
    stop.abort(new Error('cancelled'))
    await expect(running).rejects.toThrow('cancelled')
    await expect(withRetry({ attempts: 2, base_ms: 1 }, fails('twice'))('a', open())).rejects.toThrow('twice')
  })
})

describe('with a fallback', () => {
  it('asks the second where the first fails, and only then', async () => {
    expect(await withFallback(append('1'), append('2'))('a', open())).toBe('a1')
    expect(await withFallback(fails('no'), append('2'))('a', open())).toBe('a2')
  })

  it('does not help if no model may be called, or after an abort', async () => {
    await expect(withFallback(refuses, append('2'))('a', open())).rejects.toBe(refusal)
    await expect(withFallback(fails('no'), append('2'))('a', AbortSignal.abort())).rejects.toThrow('no')
  })

  it('nests: a timeout, then another worker', async () => {
    const { worker, reasons } = waiting()
    expect(await withFallback(withTimeout(5, worker), append(' quickly'))('a', open())).toBe('a quickly')
    expect(reasons).toHaveLength(1)
  })
})
