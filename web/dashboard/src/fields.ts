// The properties of fields that Grafana's code may set from a dashboard, and the transformations. Grafana's program registers them with
// editors; drawing needs only how a value is processed.

import {
  FieldConfigOptionsRegistry, FieldType, displayNameOverrideProcessor, identityOverrideProcessor, numberOverrideProcessor,
  standardTransformers, standardTransformersRegistry, stringOverrideProcessor, thresholdsOverrideProcessor, unitOverrideProcessor,
  valueMappingsOverrideProcessor,
  type FieldConfig, type FieldConfigPropertyItem,
} from "@grafana/data";
import type { GraphFieldConfig } from "@grafana/schema";
import type { Panel } from "./types";

const STANDARD: Record<string, (...arguments_: any[]) => any> = {
  unit: unitOverrideProcessor,
  min: numberOverrideProcessor,
  max: numberOverrideProcessor,
  decimals: numberOverrideProcessor,
  displayName: displayNameOverrideProcessor,
  color: identityOverrideProcessor,
  noValue: stringOverrideProcessor,
  mappings: valueMappingsOverrideProcessor,
  thresholds: thresholdsOverrideProcessor,
} satisfies Partial<Record<keyof FieldConfig, unknown>>;

/** Those of time series. */
const CUSTOM: (keyof GraphFieldConfig)[] = [
  "axisLabel", "axisPlacement", "axisSoftMax", "axisSoftMin", "drawStyle", "fillOpacity", "gradientMode", "hideFrom", "lineInterpolation",
  "lineStyle", "lineWidth", "pointSize", "scaleDistribution", "showPoints", "spanNulls", "stacking", "thresholdsStyle",
];

function item(path: string, process: (...arguments_: any[]) => any, isCustom: boolean): FieldConfigPropertyItem {
  const nothing = () => null;
  const id = isCustom ? `custom.${path}` : path;
  const shouldApply = (field: { type: FieldType }) => field.type !== FieldType.time;
  return { id, path, name: path, process, isCustom, shouldApply, override: nothing, editor: nothing };
}

export const registry = new FieldConfigOptionsRegistry(() => [
  ...Object.entries(STANDARD).map(([path, process]) => item(path, process, false)),
  ...CUSTOM.map((path) => item(path, identityOverrideProcessor, true)),
]);

/** Some have two names in the list. */
const transformers = [...new Set(Object.values(standardTransformers))];
standardTransformersRegistry.setInit(() =>
  transformers.map((transformation) => ({
    id: transformation.id, name: transformation.name, transformation, editor: () => null, imageDark: "", imageLight: "",
  })),
);

/** What a panel uses and this page does not know. */
export function unknown(panel: Panel): string[] {
  const { defaults, overrides } = panel.fieldConfig;
  const { custom, ...standard } = defaults;
  const properties = [
    ...Object.keys(standard),
    ...Object.keys(custom ?? {}).map((name) => `custom.${name}`),
    ...overrides.flatMap((override) => override.properties.map((property) => property.id)),
  ];
  return [
    ...properties.filter((id) => !registry.getIfExists(id)).map((id) => `the property ${id} is not known`),
    ...(panel.transformations ?? [])
      .filter((one) => !standardTransformersRegistry.getIfExists(one.id))
      .map((one) => `the transformation ${one.id} is not known`),
  ];
}
