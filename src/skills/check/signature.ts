import type { ManifestError } from './check-manifest.ts'
import type { Manifest } from '../manifest/manifest.ts'

/** Whether inputs, outputs, bindings, parsers and required slots speak of the same names. */
export function signatureErrors(manifest: Manifest): ManifestError[] {
  const { inputs, outputs, blackboard_bindings: bindings } = manifest.signature
  const inputNames = inputs.map(({ name }) => name)
  const outputNames = outputs.map(({ name }) => name)
  const isInput = (name: string) => inputNames.includes(name)
  const noInput = (path: string, name: string): ManifestError => ({ path, message: `${name} is not an input: add it to signature.inputs` })
  const noOutput = (path: string, name: string): ManifestError => ({
    path,
    message: `${name} is not an output: add it to signature.outputs`,
  })
  const missing = (names: readonly string[], path: string) =>
    names.flatMap((name, index) => (isInput(name) ? [] : [noInput(`${path}.${index}`, name)]))
  return [
    ...repeated(inputNames, 'signature.inputs'),
    ...repeated(outputNames, 'signature.outputs'),
    ...missing(manifest.activation.required_slots, 'activation.required_slots'),
    ...manifest.preconditions.data_present.flatMap((name, index) =>
      name.includes('.') || isInput(name) ? [] : [noInput(`preconditions.data_present.${index}`, name)],
    ),
    ...Object.keys(bindings.inputs).flatMap((name) =>
      isInput(name) ? [] : [noInput(`signature.blackboard_bindings.inputs.${name}`, name)],
    ),
    ...Object.keys(bindings.outputs).flatMap((name) =>
      outputNames.includes(name) ? [] : [noOutput(`signature.blackboard_bindings.outputs.${name}`, name)],
    ),
    ...Object.keys(manifest.plan.result_map).flatMap((name) =>
      outputNames.includes(name) ? [] : [noOutput(`plan.result_map.${name}`, name)],
    ),
    ...outputNames.flatMap((name, index) =>
      Object.hasOwn(manifest.plan.result_map, name)
        ? []
        : [{ path: `signature.outputs.${index}`, message: `nothing gives ${name}: add it to plan.result_map` }],
    ),
    ...parserErrors(manifest),
  ]
}

function parserErrors({ signature, llm_support }: Manifest): ManifestError[] {
  const inputs = new Map(signature.inputs.map((input) => [input.name, input]))
  const errorsOf = (names: readonly string[], path: string) =>
    names.flatMap((name, index): ManifestError[] => {
      const input = inputs.get(name)
      if (name === 'raw_text') return []
      if (!input) return [{ path: `${path}.${index}`, message: `${name} is not an input: add it to signature.inputs` }]
      return input.secret ? [{ path: `${path}.${index}`, message: `${name} is secret: a model must neither see nor parse it` }] : []
    })
  return llm_support.parsers.flatMap((parser, index) => [
    ...errorsOf(parser.inputs, `llm_support.parsers.${index}.inputs`),
    ...errorsOf(parser.outputs, `llm_support.parsers.${index}.outputs`),
  ])
}

function repeated(names: readonly string[], path: string): ManifestError[] {
  return names.flatMap((name, index) =>
    names.indexOf(name) < index ? [{ path: `${path}.${index}`, message: `${name} stands there twice` }] : [],
  )
}
