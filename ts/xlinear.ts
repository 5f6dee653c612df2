// Training, models, batch predictions.

import { AquilaError, attempt, expected, translate } from './errors.js'
import type { GroupParameters, PredictParameters, TrainParameters } from './generated/options.js'
import { type Groups, groupsOf } from './groups.js'
import { type PathLike, pathOf } from './io.js'
import { run } from './job.js'
import {
  type Csr,
  csrOf,
  type FeatureRow,
  type Features,
  featuresOf,
  labelsOf,
  optionalCsr,
  rowOf,
} from './matrix.js'
import type { Meanings, MeaningsOptions } from './meanings.js'
import type { Lesson, Matrix, ModelHandle, Report as NativeReport } from './native/binding.cjs'
import { native } from './native.js'
import {
  both,
  type CallOptions,
  type FlatOptions,
  flag,
  flatten,
  integer,
  json,
  type OptionValue,
  only,
  optionsOf,
  specs,
} from './options.js'
import { inPieces, type Turn } from './pieces.js'
import { Ranked, type RankedRow } from './ranked.js'
import { SEAL, sealed, uncloneable } from './sealed.js'
import { Answer, type Lookup, most, readSettings, Searcher } from './searcher.js'
import { LabelTree, optionalTree } from './tree.js'

/** Everything training may be told. */
export interface TrainOptions extends TrainParameters {
  /** A tree of your own instead of k-means. */
  labelTree?: LabelTree | undefined
  /** Label vectors of your own, labels × anything, instead of PIFA or PII. */
  labelVectors?: Csr | undefined
  /** Relevance of each label of each row, with exactly the pattern of the labels. */
  relevance?: Csr | undefined
  /** Further negatives, rows × labels: a listed label learns from the row though the tree would not show it. */
  negatives?: Csr | undefined
  /** One name for each label, kept in the model. */
  labelNames?: readonly string[] | undefined
  /** One name for each feature, such as its word, kept in the model; those of a dense block last. */
  featureNames?: readonly string[] | undefined
  /** Any JSON value, kept in the model. */
  metadata?: unknown
}

/** Everything training on groups may be told. */
export interface TrainGroupsOptions extends Omit<TrainOptions, 'relevance' | 'negatives'>, GroupParameters {}

/** What to look up. */
export interface SearchOptions extends PredictParameters {
  /** Only these labels, ascending and unique: other subtrees are never entered. */
  allowed?: Uint32Array | undefined
}

/** What to predict. */
export interface PredictOptions extends SearchOptions {
  /** For each row just these labels, all of them scored whatever the beam: rows × labels, values ignored. */
  chosen?: Csr | undefined
}

/** Seconds that the stages of a training took. */
export interface TrainSeconds {
  /** The vectors that describe labels to k-means. */
  labelVectors: number
  /** The label tree. */
  tree: number
  /** Finding further leaves of labels, the matchers' learning included; 0 without overlap. */
  overlap: number
  /** The classifiers of all layers. */
  layers: number
  /** The model's layout in memory. */
  layout: number
  /** Everything, from matrices in memory to model in memory. */
  total: number
}

/** What training took. */
export interface TrainReport {
  /** Seconds of each stage and in all. */
  seconds: TrainSeconds
  /** The forecast peak of memory, in bytes, made before training began. */
  forecastBytes: number
}

/** What a model tells of itself. */
export interface ModelInfo {
  /** Number of feature columns. */
  features: number
  /** How many of them, the last ones, are those of a dense block. */
  denseFeatures: number
  /** Number of labels. */
  labels: number
  /** Number of slots: at least one for each label. */
  slots: number
  /** Number of labels under more than one leaf. */
  several: number
  /** Number of labels with a slot under the root beside their leaves. */
  atRoot: number
  /** Columns of each layer, root first. */
  layers: number[]
  /** Number of stored weights. */
  weights: number
  /** Bytes of the model file. */
  bytes: number
  /** Whether the bytes are mapped from a file rather than held in memory. */
  mapped: boolean
  /** Version of the file format. */
  version: number
  /** Seed of the training. */
  seed: number
  /** Every parameter of the training, defaults included, by its full name. */
  params: Readonly<Record<string, OptionValue>>
  /** What the training was given as `metadata`. */
  metadata: unknown
}

/** How to open a model. */
export interface OpenOptions {
  /**
   * Compare every byte with the file's checksums: reads the whole file.
   * @defaultValue `false`
   */
  verify?: boolean | undefined
  /**
   * Map the file, which takes milliseconds and shares its memory, rather than read it into memory of this process. A
   * mapped file must not be cut or written into while it is open; what was read no longer depends on the file.
   * @defaultValue `true`
   */
  map?: boolean | undefined
}

const MODEL = Symbol('an XLinear, which is native memory: open its file in the other thread instead')

/** Names are handed over so many at a time, and bytes: what takes a few milliseconds. */
const NAMES = 5_000
const BYTES = 4 << 20
/** Meanings of so many labels are made objects at a time. */
const MEANINGS = 100

/** A copy of names, whose strings are still to be checked. */
function namesOf(value: unknown, option: string): readonly unknown[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) throw expected('an array of strings', option, value)
  return value.slice()
}

/** The matrices of a training: labels of rows, or of groups of them. */
interface Material {
  x: Matrix
  y: Matrix
  groups?: Matrix
  relevance?: Matrix | undefined
  negatives?: Matrix | undefined
}

/** Takes hold of all that a training is given, and hands over the names. */
async function lessonOf(
  { x, y, groups, relevance, negatives }: Material,
  options: Record<string, unknown>,
  known: Parameters<typeof flatten>[1],
  turn: Turn,
): Promise<{ lesson: Lesson; flat: FlatOptions }> {
  const { labelTree, labelVectors, labelNames, featureNames, metadata, ...params } = options
  const flat = flatten(params, known)
  const names = namesOf(labelNames, 'labelNames')
  const words = namesOf(featureNames, 'featureNames')
  const tree = optionalTree(labelTree, 'labelTree')
  const vectors = optionalCsr(labelVectors, 'labelVectors')
  const lesson = new native.Lesson(x, y, groups, tree, vectors, relevance, negatives)
  if (metadata !== undefined) lesson.setMetadata(json(metadata, 'metadata'))
  // Array.from, for map leaves out the holes of an array.
  const piece = (all: readonly unknown[], option: string, from: number, to: number) =>
    Array.from(all.slice(from, to), (name, i) => {
      if (typeof name !== 'string') throw expected('a string', `${option}[${from + i}]`, name)
      return name
    })
  await inPieces(names.length, NAMES, turn, (from, to) => {
    lesson.pushLabelNames(piece(names, 'labelNames', from, to))
  })
  await inPieces(words.length, NAMES, turn, (from, to) => {
    lesson.pushFeatureNames(piece(words, 'featureNames', from, to))
  })
  return { lesson, flat }
}

/**
 * A linear classifier at every edge of a label tree: trains in seconds, answers in well under a millisecond.
 *
 * @example
 * ```ts
 * const model = await XLinear.train(x, y, { tree: { maxLeaf: 100 } }, { threads: 2 })
 * const top = await model.predict(xt, { k: 5, beam: 10 })
 * console.log(top.row(0).labels, top.row(0).scores)
 * await model.save('model.aquila')
 * ```
 */
export class XLinear {
  /** What the training took; `undefined` for a model that was opened. */
  readonly report: TrainReport | undefined
  readonly #native: ModelHandle
  #info: ModelInfo | undefined
  #labelNames: readonly string[] | undefined
  /** What single queries of this object are made with, from the first on. */
  #queries: { lookup: Lookup; labels: number; answer: Answer } | undefined

  private constructor(seal: typeof SEAL, handle: ModelHandle, report?: TrainReport) {
    sealed(seal, 'XLinear', 'XLinear.open, XLinear.fromBytes, XLinear.train or XLinear.trainGroups')
    this.#native = handle
    this.report = report
    uncloneable(this, MODEL)
  }

  /**
   * Learns a model from rows and their labels. An aborted training leaves nothing behind.
   *
   * @param x - Rows × features.
   * @param y - Rows × labels: an entry other than 0 is a label of the row.
   */
  static async train(
    x: Csr | Features,
    y: Csr,
    options?: TrainOptions,
    call?: CallOptions,
  ): Promise<XLinear> {
    const { model, report } = await run(call, XLinear.train, async (control, turn) => {
      const { relevance, negatives, ...rest } = optionsOf(options)
      const given = {
        x: featuresOf(x, 'x'),
        y: csrOf(y, 'y'),
        relevance: optionalCsr(relevance, 'relevance'),
        negatives: optionalCsr(negatives, 'negatives'),
      }
      const { lesson, flat } = await lessonOf(given, rest, specs.train, turn)
      return lesson.train(flat, control)
    })
    return XLinear.#trained(model, report)
  }

  /**
   * Learns a model from samples whose labels are known only for groups of them. By default the labels are refined
   * first (`eagle.refine`), which takes the time of up to eight trainings; with `group: { rounds: 0 }` of two to
   * three.
   *
   * @param x - Samples × features.
   * @param groups - Which samples are in which groups. Samples of no group teach nothing.
   * @param bags - Groups × labels: an entry other than 0 is a label of the group.
   */
  static async trainGroups(
    x: Csr | Features,
    groups: Groups,
    bags: Csr,
    options?: TrainGroupsOptions,
    call?: CallOptions,
  ): Promise<XLinear> {
    const { model, report } = await run(call, XLinear.trainGroups, async (control, turn) => {
      const given = { x: featuresOf(x, 'x'), y: csrOf(bags, 'bags'), groups: groupsOf(groups) }
      const known = [...specs.groups, ...specs.train]
      const { lesson, flat } = await lessonOf(given, optionsOf(options), known, turn)
      return lesson.trainGroups(flat, control)
    })
    return XLinear.#trained(model, report)
  }

  static #trained(model: ModelHandle, { forecastBytes, ...seconds }: NativeReport): XLinear {
    return new XLinear(SEAL, model, { seconds, forecastBytes })
  }

  /**
   * Opens a model file by mapping it, in milliseconds whatever its size. All who have the same file open in this
   * process, worker threads included, share its memory. Replace a model by writing a new file over the name, as
   * {@link XLinear.save} does; never change a file in place while it is open: where a mapped file is cut, the system ends
   * the process with `SIGBUS`, which nothing can catch. `map: false` reads the file into memory instead, and
   * {@link XLinear.fromBytes} takes bytes from anywhere; neither depends on the file any longer.
   */
  static async open(path: PathLike, options?: OpenOptions, call?: CallOptions): Promise<XLinear> {
    const handle = await run(call, XLinear.open, (control) => {
      const given = optionsOf(options)
      only(given, ['verify', 'map'])
      const [verify, map] = [flag(given.verify, 'verify', false), flag(given.map, 'map', true)]
      return native.openModel(pathOf(path), verify, map, control)
    })
    return new XLinear(SEAL, handle)
  }

  /** Takes a copy of the bytes of a model file; leave them as they are until the promise settles. */
  static async fromBytes(
    bytes: Uint8Array,
    options?: Pick<OpenOptions, 'verify'>,
    call?: CallOptions,
  ): Promise<XLinear> {
    const handle = await run(call, XLinear.fromBytes, async (control, turn) => {
      if (!(bytes instanceof Uint8Array)) throw expected('a Uint8Array', 'bytes', bytes)
      const given = optionsOf(options)
      only(given, ['verify'])
      const verify = flag(given.verify, 'verify', false)
      const total = bytes.length
      const copy = new native.ModelBytes(total)
      await inPieces(total, BYTES, turn, (from, to) => {
        if (bytes.length !== total)
          throw new AquilaError(
            'INVALID_ARGUMENT',
            'The bytes of the model were transferred while being copied',
          )
        copy.push(bytes.subarray(from, to))
      })
      return copy.open(verify, control)
    })
    return new XLinear(SEAL, handle)
  }

  /** Ranks labels of every row. */
  async predict(x: Csr | Features, options?: PredictOptions, call?: CallOptions): Promise<Ranked> {
    const arrays = await run(call, this.predict, (control) => {
      const { allowed, chosen, ...params } = optionsOf(options)
      if (allowed !== undefined && chosen !== undefined) throw both('allowed', 'chosen')
      return this.#native.predict(
        featuresOf(x, 'x'),
        flatten(params, specs.predict),
        labelsOf(allowed, 'allowed'),
        optionalCsr(chosen, 'chosen'),
        control,
      )
    })
    return new Ranked(arrays)
  }

  /**
   * Ranks labels of one row at once, on the calling thread: for one query this is far cheaper than a promise. Options may
   * differ from call to call at no cost; of sets of `allowed` labels the last four are kept prepared, and another one takes
   * a look at all labels of the model. The answer is a copy; {@link XLinear.searcher} saves that too.
   */
  predictOne(row: FeatureRow, options?: SearchOptions): RankedRow {
    const single = this.#single()
    const given = optionsOf(options)
    const { settings } = single.answer
    readSettings(given, settings)
    const allowed = Object.hasOwn(given, 'allowed') ? labelsOf(given.allowed, 'allowed') : undefined
    const { indices, values, dense } = rowOf(row)
    const k = most(settings, single.labels)
    if (single.answer.labels.length < k) single.answer = new Answer(k, settings)
    const { all, labels, scores } = single.answer
    try {
      const count =
        allowed === undefined && dense === undefined
          ? single.lookup(indices, values, all)
          : single.lookup(indices, values, all, dense, allowed)
      return { labels: labels.slice(0, count), scores: scores.slice(0, count) }
    } catch (error) {
      throw translate(error)
    }
  }

  /**
   * A warm searcher for one query after another without garbage. It shares the memory of its queries with all others of
   * this model; the labels that it is narrowed to are its own until it is closed or collected.
   */
  searcher(options?: SearchOptions): Searcher {
    const given = optionsOf(options)
    const { lookup, labels } = this.#single()
    const { settings } = new Answer(0)
    readSettings(given, settings)
    const allowed = Object.hasOwn(given, 'allowed') ? labelsOf(given.allowed, 'allowed') : undefined
    const answer = new Answer(most(settings, labels), settings)
    if (allowed === undefined) return Searcher.wrap(lookup, answer)
    const narrowing = attempt(() => this.#native.narrow(allowed))
    return Searcher.wrap(narrowing.lookup(this.#native), answer, narrowing)
  }

  #single(): { lookup: Lookup; labels: number; answer: Answer } {
    this.#queries ??= attempt(() => ({
      lookup: this.#native.lookup(),
      labels: this.#native.labels,
      answer: new Answer(10),
    }))
    return this.#queries
  }

  /** Writes the model to a file, whole or not at all: when the call is cancelled, an old file stays as it was. */
  async save(path: PathLike, call?: CallOptions): Promise<void> {
    await run(call, this.save, (control) => this.#native.save(pathOf(path), control))
  }

  /** Compares every byte with the file's checksums; a difference is a `CHECKSUM` error. */
  async verify(call?: CallOptions): Promise<void> {
    await run(call, this.verify, (control) => this.#native.verify(control))
  }

  /** What the model tells of itself. */
  get info(): ModelInfo {
    if (!this.#native.isOpen || !this.#info) {
      const { names, values, metadata, ...info } = attempt(() => this.#native.info())
      const params = Object.fromEntries(names.map((name, i) => [name, values[i] as OptionValue]))
      this.#info = { ...info, params, metadata: metadata === '' ? undefined : JSON.parse(metadata) }
    }
    return this.#info
  }

  /** The name of one label, or `undefined` where the model has none. */
  labelName(label: number): string | undefined {
    const id = integer(label ?? null, 'label', 0, 2 ** 32 - 1, 0)
    return attempt(() => this.#native.labelName(id)) ?? undefined
  }

  /** One name for each label, or an empty list; for a few of many {@link XLinear.labelName} is cheaper. */
  get labelNames(): readonly string[] {
    if (!this.#native.isOpen || !this.#labelNames)
      this.#labelNames = Object.freeze(attempt(() => this.#native.labelNames()))
    return this.#labelNames
  }

  /** The name of one feature, or `undefined` where the model has none. */
  featureName(feature: number): string | undefined {
    const id = integer(feature ?? null, 'feature', 0, 2 ** 32 - 1, 0)
    return attempt(() => this.#native.featureName(id)) ?? undefined
  }

  /**
   * What labels mean in each of the leaves that they are placed under: who their neighbours are there, and which features tell
   * them from these. Without `labels`, of all labels that are placed under several leaves.
   */
  async meanings(options?: MeaningsOptions, call?: CallOptions): Promise<Meanings[]> {
    return run(call, this.meanings, async (control, turn) => {
      const given = optionsOf(options)
      only(given, ['labels', 'features'])
      const features = integer(given.features, 'features', 0, 2 ** 32 - 1, 10)
      const found = await this.#native.meanings(labelsOf(given.labels, 'labels'), features, control)
      const all: Meanings[] = []
      for (let piece = found.next(MEANINGS); piece.length > 0; piece = found.next(MEANINGS)) {
        all.push(...piece)
        await turn()
      }
      return all
    })
  }

  /** The label tree. */
  tree(): LabelTree {
    return LabelTree.wrap(attempt(() => this.#native.tree()))
  }

  /** Whether the model is not closed. */
  get isOpen(): boolean {
    return this.#native.isOpen
  }

  /**
   * Lets go of the model at once, for its searchers too: later calls are `CLOSED` errors. Predictions that are
   * running end as if nothing had happened. Closing twice is fine.
   */
  close(): void {
    this.#queries = undefined
    this.#native.close()
  }

  /** Closes the model at the end of a `using` block. */
  [Symbol.dispose](): void {
    this.close()
  }
}

/** The forecast peak of memory of such a training, in bytes, both matrices included. */
export async function forecast(
  x: Csr | Features,
  y: Csr,
  options?: TrainParameters,
  call?: CallOptions,
): Promise<number> {
  return run(call, forecast, (control) => {
    const flat = flatten(optionsOf(options), specs.train)
    return native.forecast(featuresOf(x, 'x'), csrOf(y, 'y'), flat, control)
  })
}

/** Every training parameter with the value that these options give it; refuses what training would refuse. */
export function trainParameters(options?: TrainParameters): Readonly<Record<string, OptionValue>> {
  const flat = flatten(optionsOf(options), specs.train)
  return Object.freeze(attempt(() => native.checkTrainOptions(flat)))
}

/** The same for training on groups: their parameters, then those of training. */
export function trainGroupsParameters(
  options?: GroupParameters & TrainParameters,
): Readonly<Record<string, OptionValue>> {
  const flat = flatten(optionsOf(options), [...specs.groups, ...specs.train])
  return Object.freeze(attempt(() => native.checkLearnOptions(flat)))
}
