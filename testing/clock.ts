const RealDate = Date
let ahead_ms = 0

/** The time of the tests: the machine's, moved ahead. */
const now = (): number => RealDate.now() + ahead_ms

export function moveClockTo(time: number): void {
  ahead_ms = Math.max(ahead_ms, time - RealDate.now())
}

/**
 * Only while no object has stored a time. Agents, tools and Reflex's own modules read the clock by
 * `Date`, so it is replaced for all, and again after a test that gave the runtime its own back.
 */
export function resetClock(): void {
  ahead_ms = 0
  globalThis.Date = TestDate
}

const TestDate = new Proxy(RealDate, {
  construct: (target, given: unknown[], as) => Reflect.construct(target, given.length === 0 ? [now()] : given, as),
  apply: () => new RealDate(now()).toString(),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
})

/** An object's alarms are set by the tests' clock, and the runtime fires them by the machine's. */
export function alarmsByClock(storage: DurableObjectStorage): void {
  const setAlarm = storage.setAlarm.bind(storage)
  const getAlarm = storage.getAlarm.bind(storage)
  storage.setAlarm = (time, options) => setAlarm(Number(time) - ahead_ms, options)
  storage.getAlarm = async (options) => {
    const time = await getAlarm(options)
    return time === null ? null : time + ahead_ms
  }
}
