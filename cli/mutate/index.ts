import { type Area, areas, filesOf } from './areas.ts'
import { judgeAll } from './by-hand.ts'
import { breaks } from './list.ts'
import { reasonsByHand } from './reasons.ts'
import { runFile } from './stryker.ts'
import { keep, LEAST_KILLED, percent, readResults, reasonOf, shareOf, sumOf } from './results.ts'

// The command `npm run mutate -- ID… | --area NAME… | --file PATH… | --list | --page` breaks the
// code in one place after the other. It says which breaks no test notices: docs/mutation.md.
const [option, ...names] = process.argv.slice(2)

if (option === '--list') list()
else if (option === '--page') keep(readResults())
else if (option === '--area') for (const name of names.length === 0 ? Object.keys(areas) : names) judgeArea(name)
else if (option === '--file') for (const file of names) judgeFile(file)
else judgeBreaks(process.argv.slice(2))

function list(): void {
  for (const [name, { files }] of Object.entries(areas)) console.log(`--area ${name}  ${files.join(' ')}`)
  for (const { id, file, what } of breaks) console.log(`${id}  ${file}  ${what}`)
}

function judgeArea(name: string): void {
  const area = areas[name]
  if (!area) throw new Error(`no area ${name}: there are ${Object.keys(areas).join(', ')}`)
  const files = filesOf(area)
  for (const file of files) judgeOne(name, area, file)
  const results = readResults()
  const judged = Object.entries(results.areas[name] ?? {}).filter(([file]) => files.includes(file))
  keep({ ...results, areas: { ...results.areas, [name]: Object.fromEntries(judged) } })
  const { all, killed, explained, unexplained, share } = sumOf(readResults().areas[name] ?? {})
  const said = `${killed} of ${all} killed (${percent(share)}), ${explained} survived with a reason, ${unexplained} without`
  console.log(`${name}: ${said}`)
  if (share < LEAST_KILLED) process.exitCode = 1
}

function judgeFile(file: string): void {
  const found = Object.entries(areas).find(([, area]) => filesOf(area).includes(file))
  if (!found) throw new Error(`no area has the file ${file}: npm run mutate -- --list`)
  judgeOne(...found, file)
}

/** The result is kept at once: an area takes long. */
function judgeOne(name: string, area: Area, file: string): void {
  const result = runFile(file, area)
  const results = readResults()
  keep({ ...results, areas: { ...results.areas, [name]: { ...results.areas[name], [file]: result } } })
  for (const one of result.survived) {
    const { line, from, to } = one
    const reason = reasonOf({ ...one, file }) ?? 'no reason is listed in cli/mutate/reasons.ts'
    console.log(`survived  ${file}:${line}  ${from}  →  ${to}\n          ${reason}`)
  }
}

function judgeBreaks(asked: readonly string[]): void {
  const unknown = asked.filter((id) => !breaks.some((one) => one.id === id))
  if (unknown.length > 0) throw new Error(`no break ${unknown.join(', ')}: npm run mutate -- --list`)
  const counts = { errors: 0, unexplained: 0 }
  const { by_hand } = readResults()
  const killed = new Set(by_hand.killed)
  const survived = new Set(by_hand.survived)
  judgeAll(
    breaks.filter(({ id }) => asked.length === 0 || asked.includes(id)),
    (one, verdict) => {
      const line = [one.id, one.file, one.what].join('  ')
      if ('error' in verdict) {
        counts.errors += 1
        console.log(`error     ${line}\n          ${verdict.error}`)
        return
      }
      killed.delete(one.id)
      survived.delete(one.id)
      if ('killed_by' in verdict) {
        killed.add(one.id)
        console.log(`killed    ${line}\n          by ${verdict.killed_by}`)
      } else {
        survived.add(one.id)
        const reason = reasonsByHand[one.id]
        if (reason === undefined) counts.unexplained += 1
        console.log(`survived  ${line}\n          ${reason ?? 'no reason is listed in cli/mutate/reasons.ts'}`)
      }
      keep({ ...readResults(), by_hand: { killed: [...killed].toSorted(), survived: [...survived].toSorted() } })
    },
  )
  const share = shareOf(killed.size, survived.size)
  const said = `${killed.size} of ${killed.size + survived.size} that were ever run are killed (${percent(share)})`
  console.log(`${said}; now ${counts.unexplained} survivors without a reason, ${counts.errors} errors`)
  process.exitCode = share >= LEAST_KILLED && counts.unexplained + counts.errors === 0 ? 0 : 1
}
