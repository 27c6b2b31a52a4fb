/**
 * The line of a place such as `plan.steps.0.args.to` in JSON, counted from 1. The nearest
 * value around a place that does not exist has its line.
 */
export function lineOf(text: string, path: string): number {
  const wanted = path.replaceAll(/\[(\d+)\]/g, '.$1').split('.')
  const open: { list: boolean; next: string }[] = []
  let best = { depth: -1, at: 0 }
  const see = (at: number): void => {
    const here = open.map(({ next }) => next)
    if (here.length > best.depth && here.length <= wanted.length && here.every((name, index) => name === wanted[index]))
      best = { depth: here.length, at }
  }
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\],]|[^\s{}[\],"]+/g)) {
    const within = open.at(-1)
    if (token === '{' || token === '[') {
      see(index)
      open.push({ list: token === '[', next: token === '[' ? '0' : '' })
    } else if (token === '}' || token === ']') open.pop()
    else if (token === ',') {
      if (within?.list) within.next = String(Number(within.next) + 1)
    } else if (within && !within.list && token.endsWith(':')) within.next = String(JSON.parse(token.replace(/\s*:$/, '')))
    else see(index)
  }
  return text.slice(0, best.at).split('\n').length
}
