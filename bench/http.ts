/** Node's fetch keeps its connections alive; the body is read whole, or the connection is not free again. */
export async function send(url: string, init: RequestInit = {}): Promise<string> {
  const response = await fetch(url, init)
  const text = await response.text()
  if (!response.ok) throw new Error(`${init.method ?? 'GET'} ${url} answered ${response.status}: ${text.slice(0, 1000)}`)
  return text
}

/** Some requests at a time, each as soon as one before it is answered. */
export async function concurrently<Item>(items: readonly Item[], work: (item: Item) => Promise<unknown>, lanes = 4): Promise<void> {
  const rest = items.values()
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      for (const item of rest) await work(item)
    }),
  )
}

/** Asks seldom: asking is work, too, for the server that is measured. */
export async function until(
  reached: () => Promise<boolean>,
  { pause_ms = 25, timeout_ms = 120_000, what = 'the end' } = {},
): Promise<void> {
  const end = performance.now() + timeout_ms
  while (!(await reached())) {
    if (performance.now() > end) throw new Error(`waited ${timeout_ms} ms for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, pause_ms))
  }
}

/** Events a second, for work that handles `count` of them. */
export async function rate(count: number, work: () => Promise<void>): Promise<number> {
  const start = performance.now()
  await work()
  return (count / (performance.now() - start)) * 1000
}
