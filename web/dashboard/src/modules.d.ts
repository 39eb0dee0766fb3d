declare module "*.svg" {
  const text: string;
  export default text;
}
declare module "*.css";
declare module "d3-scale-chromatic";
